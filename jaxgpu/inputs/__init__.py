"""What users give: kinds, ranges, shapes, the sentences that refuse, and calls outside of `jit`.

Read `fields` first (pytrees whose fields declare their ranges), then `ranges` (numbers and arrays),
`arguments` (keys, functions, words), `kinds` (annotations), `calls` (outside of `jit` a call is
one program) and `doors` (public functions explain an error by their documentation). What decides
how a user's function is traced is found by `references`, from what `code_reads` says of its code,
and traced anew in a `trace_context`; `extras` names the optional packages.
"""

from .fields import number, pytree, size, static

__all__ = ["number", "pytree", "size", "static"]
