"""Checks the shape comments `# [N, 3] ...` of a dataclass against real arrays.

Letters are bound at their first use and must agree over all fields and all given trees.
"""

import dataclasses
import inspect
import re
from typing import Any

import jax

_FIELD = re.compile(r"^\s+(\w+)\s*:.*?#\s*\[([^\]]*)\]")


def comments(kind: type) -> dict[str, list[str]]:
    """Return the commented dimensions of each field; fields without a comment are left out."""
    found = {}
    for line in inspect.getsource(kind).splitlines():
        if match := _FIELD.match(line):
            found[match[1]] = [d.strip() for d in match[2].split(",") if d.strip()]
    return found


def check_shapes(*trees: Any) -> dict[str, int]:
    """Compare every commented field of `trees`, nested ones too, and return the letters' sizes."""
    bound: dict[str, int] = {}
    for tree in trees:
        _check(tree, bound)
    return bound


def _check(tree: Any, bound: dict[str, int]) -> None:
    promised = comments(type(tree))
    for field in dataclasses.fields(tree):
        value, where = getattr(tree, field.name), f"{type(tree).__name__}.{field.name}"
        if dataclasses.is_dataclass(value):
            _check(value, bound)
        elif field.name in promised:
            _compare(where, promised[field.name], jax.numpy.shape(value), bound)


def _compare(where: str, dims: list[str], shape: tuple[int, ...], bound: dict[str, int]) -> None:
    if dims and dims[0] == "...":
        dims, shape = dims[1:], shape[len(shape) - len(dims) + 1 :]
    assert len(dims) == len(shape), f"{where}: the comment says {dims}, the array is {shape}"
    for dim, size in zip(dims, shape):
        want = int(dim) if dim.isdigit() else bound.setdefault(dim, size) if dim.isalpha() else size
        assert want == size, f"{where}: the comment says {dims}, the array is {shape}, {bound}"
