"""Argument checks: types, ranges, shapes and error messages; compiled calls outside of `jit`.

Read `fields` first (pytrees whose fields declare their ranges), then `ranges` (numbers and arrays),
`arguments` (keys, functions, strings), `type_hints` (type annotations), `calls` (outside of `jit` a
call is one program) and `explanations` (failed calls name the invalid argument). `references` finds
the values that decide how a user's function is traced, from the names in its code (`code_reads`);
`trace_context` makes JAX trace it again when they change. `extras` imports optional packages.
"""

from .fields import number, pytree, size, static

__all__ = ["number", "pytree", "size", "static"]
