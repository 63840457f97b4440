"""Fields of a class for its reference page: text, default and range of each.

The text of a field is the comment after it in the source, with shape and unit, or above it. A field
without a comment gets the first sentence of the docstring of its class, if the class is one of the
package's.
"""

import ast
import dataclasses
import functools
import inspect
import re
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

from jaxgpu.inputs import ranges


@dataclass(frozen=True)
class Field:
    """One field of a class."""

    name: str
    kind: str  # annotation
    text: str  # description; empty if there is none
    default: str  # as written in the source; empty if there is none
    among: str  # range of permitted numbers; empty if unrestricted


def fields(cls: type) -> list[Field]:
    """Return the public fields of a class, including inherited ones, in order."""
    found: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("jaxgpu"):
            found |= _declared_fields(base)
    kept = _instance_fields(cls, found)
    among = dict(ranges.field_ranges(cls)) if dataclasses.is_dataclass(cls) else {}
    return [dataclasses.replace(found[n], among=among.get(n, "")) for n in kept]


def _instance_fields(cls: type, found: dict[str, Field]) -> list[str]:
    """Return the names of the fields that instances have, in order."""
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
    else:
        names = list(getattr(cls, "_fields", found))
    return [name for name in names if name in found and not name.startswith("_")]


@functools.cache
def _source(module: str) -> tuple[ast.Module, list[str]]:
    text = inspect.getsource(sys.modules[module])
    return ast.parse(text), text.splitlines()


def _declared_fields(cls: type) -> dict[str, Field]:
    """Return the fields that the body of a class declares."""
    tree, lines = _source(cls.__module__)
    bodies = [
        n.body for n in ast.walk(tree) if isinstance(n, ast.ClassDef) if n.name == cls.__name__
    ]
    found = {}
    for node in bodies[0] if bodies else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind = ast.unparse(node.annotation)
            if kind.startswith("ClassVar"):
                continue
            text = comments(lines, node.lineno - 1, (node.end_lineno or node.lineno) - 1)
            text = text or _class_text(kind, cls)
            found[node.target.id] = Field(node.target.id, kind, text, _default_text(node.value), "")
    return found


def comments(lines: list[str], first: int, last: int) -> str:
    """Return the comments on a statement: those after its lines, then those above it."""
    above, begin = [], first
    while begin and lines[begin - 1].strip().startswith("# "):
        begin -= 1
        above.insert(0, lines[begin].strip()[2:])
    behind = [part for line in lines[first : last + 1] for part in line.split("  # ")[1:]]
    return " ".join([*behind, *above]).strip()


def _class_text(kind: str, cls: type) -> str:
    """Return the first sentence of the first of the package's classes in an annotation."""
    for name in re.findall(r"[A-Za-z_][\w.]*", kind):
        thing: Any = sys.modules[cls.__module__]
        for part in name.split("."):
            thing = getattr(thing, part, None)
        if isinstance(thing, type) and thing.__module__.startswith("jaxgpu"):
            return first_sentence(thing)
    return ""


def first_sentence(thing: Any) -> str:
    """Return the first sentence of a docstring, on one line."""
    text = " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s+(?=[A-Z])", text)[0].rstrip(":")


def _default_text(value: ast.expr | None) -> str:
    """Return the default as written, or as passed to `number`, `field` and similar functions."""
    if value is None:
        return ""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in _DECLARERS:
        named = {word.arg: word.value for word in value.keywords}
        inner = named.get("default") or named.get("default_factory")
        if inner is None and value.args and ast.unparse(value.func) == "number":
            inner = value.args[0]
        return "" if inner is None else textwrap.shorten(ast.unparse(inner), 40, placeholder="...")
    return textwrap.shorten(ast.unparse(value), 60, placeholder="...")


_DECLARERS = ("number", "size", "static", "field", "dataclasses.field")
