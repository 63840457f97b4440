"""Description of trees and specs for JSON; arrays are stored separately, by index.

`objects` rebuilds the values from it.
"""

import dataclasses
import functools
import hashlib
import json
import re
import types
from typing import Any

import jax
import numpy as np

from jaxgpu.devices.processes import spans
from jaxgpu.inputs import arguments
from jaxgpu.inputs.code_reads import find_reads, operations

from ..checkpoint import binary
from . import catalog

_TRUSTED = set("jaxgpu jax jaxlib flax optax".split())
JSON_SCALARS = bool | int | float | str | type(None)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MAX_REPR = 200  # characters of the repr of an object that cannot be described
_MAX_DEPTH = 18  # nested objects, each of which takes up to three levels of JSON
_MAX_LISTED = 4  # size up to which the numbers of an array are listed


@dataclasses.dataclass(frozen=True)
class _Leaf:
    number: int


def describe_tree(tree: Any) -> Any:
    """Describe a pytree whose arrays are numbered in the order of `jax.tree.leaves`.

    >>> describe_tree({"a": (1.0, None)})
    {'dict': [['a', {'tuple': [{'array': 0}, None]}]]}
    """
    structure = jax.tree.structure(tree)
    marks = jax.tree.unflatten(structure, map(_Leaf, range(structure.num_leaves)))
    return describe_value(marks, [])


def describe_value(value: Any, arrays: list[Any], depth: int = 0) -> Any:
    """Describe `value` for JSON, and append its arrays to `arrays`.

    Values more than 18 objects deep are given by their repr, as JSON of a file may be 64 deep.

    >>> arrays = []
    >>> describe_value({"rate": 0.1, "x": np.zeros(2)}, arrays), len(arrays)
    ({'dict': [['rate', 0.1], ['x', {'array': 0}]]}, 1)
    """
    inner = lambda part: describe_value(part, arrays, depth + 1)
    if isinstance(value, _Leaf):
        return {"array": value.number}
    if isinstance(value, JSON_SCALARS):  # a subclass becomes a plain number
        return value if type(value).__module__ == "builtins" else json.loads(json.dumps(value))
    if depth > _MAX_DEPTH:
        return _describe_by_repr(value)
    if isinstance(value, np.ndarray | np.generic | jax.Array) and binary.is_kept(value):
        if spans(value):
            return {"shown": f"{value.dtype}{list(value.shape)} in several processes"}
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        inside = [[f.name, inner(getattr(value, f.name, None))] for f in fields]
        return {"type": catalog.name_of(type(value)), "fields": inside}
    if isinstance(value, tuple) and (names := catalog.tuple_fields(type(value))) is not None:
        inside = [[name, inner(part)] for name, part in zip(names, value)]
        return {"type": catalog.name_of(type(value)), "fields": inside}
    if isinstance(value, tuple | list):
        return {"list" if isinstance(value, list) else "tuple": list(map(inner, value))}
    if isinstance(value, dict):
        return {"dict": [[inner(key), inner(part)] for key, part in value.items()]}
    if isinstance(value, set | frozenset):
        return {"set": [inner(part) for part in sorted(value, key=repr)]}
    return _describe_other(value, inner)


def _describe_other(value: Any, inner: Any) -> Any:
    """Describe functions, their wrappers, and objects that only have a repr."""
    if isinstance(value, functools.partial):
        named = [[name, inner(part)] for name, part in value.keywords.items()]
        return {"partial": inner(value.func), "args": list(map(inner, value.args)), "named": named}
    if isinstance(value, types.MethodType):
        return {"method": value.__func__.__name__, "of": inner(value.__self__)}
    if isinstance(value, np.dtype):
        return {"dtype": str(value)}
    if isinstance(value, types.FunctionType):
        return {"named": catalog.name_of(value)} | _describe_closure(value, inner)
    if not _is_trusted(value) and hasattr(value, "__wrapped__"):  # made by `jax.jit` or similar
        return inner(value.__wrapped__)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return {"named": catalog.name_of(value)}
    if not jax.tree_util.all_leaves([value]):
        children, _ = jax.tree_util.tree_flatten_with_path(value, lambda x: x is not value)
        parts = [[jax.tree_util.keystr(at), inner(part)] for at, part in children]
        return {"type": catalog.name_of(type(value)), "fields": parts}
    return _describe_by_repr(value)


def _describe_by_repr(value: Any) -> dict[str, Any]:
    return {"shown": _ADDRESS.sub("", f"{type(value).__name__} {value!r}")[:_MAX_REPR]}


def _describe_closure(function: types.FunctionType, inner: Any) -> dict[str, Any]:
    """Describe the code of a user's function, and the values that it closes over and reads."""
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    if _is_trusted(function) and not cells:
        return {}  # the name identifies a function of a trusted package
    closed = [
        [name, inner(value)] for name, cell in zip(names, cells) for value in _cell_contents(cell)
    ]
    if _is_trusted(function):
        return {"closed": closed}
    digest = hashlib.sha256()
    read = _hash_code(digest.update, function, set())
    closed += [[name, inner(value)] for name, value in sorted(read.items())]
    closed += [[name, inner(value)] for name, value in _default_values(function).items()]
    return {"code": digest.hexdigest()[:12], "closed": closed}


def _default_values(function: types.FunctionType) -> dict[str, Any]:
    """Return the default values of parameters, by name."""
    values, code = function.__defaults__ or (), function.__code__
    names = code.co_varnames[: code.co_argcount][code.co_argcount - len(values) :]
    return dict(zip(names, values)) | (function.__kwdefaults__ or {})


def _cell_contents(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # an empty cell
        return []


def _hash_code(put: Any, function: Any, seen: set[Any]) -> dict[str, Any]:
    """Hash the code of a function and of users' functions it calls; return the values read."""
    seen.add(function)
    read: dict[str, Any] = {}
    for operation, constant in operations(function.__code__):
        parts = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
        put(f"{operation} {parts!r}".encode())
    for chain in find_reads(function.__code__).chains:
        value, last = function.__globals__.get(chain[0]), 1
        while isinstance(value, types.ModuleType | type) and last < len(chain):
            value, last = getattr(value, chain[last], None), last + 1
        value = getattr(value, "__wrapped__", value)
        if isinstance(value, types.FunctionType):
            if value not in seen and not _is_trusted(value):
                read |= _hash_code(put, value, seen)
        elif value is not None and not isinstance(value, types.ModuleType) and not callable(value):
            read[".".join(chain[:last])] = value
    return read


def _is_trusted(thing: Any) -> bool:
    return str(getattr(thing, "__module__", None)).partition(".")[0] in _TRUSTED


def kind_of(found: Any) -> tuple[str, Any]:
    """Return the first key of a structure, which is its type, and the value of this key.

    Raises:
        ValueError: it has no key.
    """
    if not isinstance(found, dict) or not found:
        raise ValueError(f"{found!r:.40} is not a structure")
    return next(iter(found.items()))


def flat_values(found: Any, arrays: list[Any], at: str = "") -> dict[str, str]:
    """Return the values in a structure by name, each short enough for an error message.

    >>> flat_values(describe_value({"rate": 0.1, "x": np.zeros(2)}, held := []), held)
    {'rate': '0.1', 'x': 'float64[2] 0.0 0.0'}
    """
    if isinstance(found, JSON_SCALARS):
        return {at: repr(found)}
    kind, inside = kind_of(found)
    if kind == "array":
        return {at: format_array(arrays[inside])}
    if kind == "complex":
        return {at: str(complex(*inside))}
    join = lambda name: f"{at}.{name}".strip(".") if at else name
    parts: list[tuple[str, Any]] = []
    names: dict[str, str] = {}
    if kind == "type":
        names = {at: inside.rpartition(":")[2]}
        parts = [(join(name), part) for name, part in found["fields"]]
    elif kind in ("tuple", "list", "set"):
        names = {at: f"{kind} of {len(inside)}"}
        parts = [(f"{at}[{i}]", part) for i, part in enumerate(inside)]
    elif kind == "dict":
        parts = [(join(key if isinstance(key, str) else repr(key)), part) for key, part in inside]
    elif kind == "partial":
        parts = [(at, inside), *((f"{at}[{i}]", part) for i, part in enumerate(found["args"]))]
        parts += [(join(name), part) for name, part in found["named"]]
    elif kind == "method":
        names, parts = {f"{at}()": inside}, [(at, found["of"])]
    elif kind == "named":
        code = f", code {found['code']}" if "code" in found else ""
        names = {at: inside.rpartition(":")[2] + code}
        parts = [(join(name), part) for name, part in found.get("closed", ())]
    else:
        names = {at: str(inside)}
    for name, part in parts:
        names |= flat_values(part, arrays, name)
    return names


def format_array(leaf: Any) -> str:
    """Format an array by its numbers if it is small, otherwise by its type and part of a digest.

    >>> format_array(np.float32(0.5)), format_array(np.zeros(100))[:13]
    ('0.5 (float32)', 'float64[100] ')
    """
    kind = ""
    if arguments.is_key(leaf):
        kind, leaf = f"key<{jax.random.key_impl(leaf)}> ", jax.random.key_data(leaf)
    a = np.asarray(leaf)
    numbers = " ".join(map(str, a.ravel())) if a.size <= _MAX_LISTED else hash_array(a)[:12]
    return f"{kind}{a.dtype}{list(a.shape)} {numbers}" if a.ndim else f"{numbers} ({a.dtype})"


def hash_array(a: np.ndarray) -> str:
    """Return the SHA-256 of the bytes of an array.

    >>> hash_array(np.zeros(0))[:8]
    'e3b0c442'
    """
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()
