"""Checks of what users give: kinds, ranges, shapes, and the sentences that refuse.

Read `fields` first (pytrees whose fields declare their ranges), then `ranges` (numbers and arrays),
`arguments` (keys, functions, words), `kinds` (annotations) and `doors` (public functions explain an
error by their documentation); `extras` names the optional packages.
"""

from .fields import number, pytree, size, static

__all__ = ["number", "pytree", "size", "static"]
