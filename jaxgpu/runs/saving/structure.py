"""What a tree or a spec is made of, in words that JSON can hold, and the same made again from them.

Arrays stay apart, by their number. Nothing is ever run or imported for what a file says, except
modules of this package and of those that it stands on: a class or a function of another module is
found again where the process has imported it, and otherwise a dataclass comes back as a
`SimpleNamespace` and a function as `Missing`, which says its name.
"""

import dataclasses
import functools
import hashlib
import importlib
import json
import re
import sys
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.devices.processes import spans
from jaxgpu.inputs import arguments

from .code_reads import find_reads, operations

_TRUSTED = set("jaxgpu jax jaxlib flax optax".split())
_PLAIN = bool | int | float | str | type(None)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SHOWN = 200  # characters of a thing that can only be shown
_FEW = 4  # numbers of an array that are shown one by one


@dataclasses.dataclass(frozen=True)
class Missing:
    """A function or an object that a file can only name.

    >>> made({"named": "notes:force"}, [])
    Missing(name='notes:force')
    """

    name: str  # "module:name", or how it was shown

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.name} is not in this process; import the module that defines it")


@dataclasses.dataclass(frozen=True)
class _Leaf:
    number: int


def of_tree(tree: Any) -> Any:
    """The structure of a pytree whose arrays are numbered as `jax.tree.leaves` has them.

    >>> made(of_tree({"a": (1.0, None), "b": 2.0}), ["first", "second"])
    {'a': ('first', None), 'b': 'second'}
    """
    structure = jax.tree.structure(tree)
    marks = jax.tree.unflatten(structure, map(_Leaf, range(structure.num_leaves)))
    return of(marks, [])


def of(value: Any, arrays: list[Any]) -> Any:
    """`value` for JSON; its arrays are appended to `arrays`.

    >>> arrays = []
    >>> of({"rate": 0.1, "x": np.zeros(2)}, arrays), len(arrays)
    ({'dict': [['rate', 0.1], ['x', {'array': 0}]]}, 1)
    """
    inner = lambda part: of(part, arrays)
    if isinstance(value, _Leaf):
        return {"array": value.number}
    if isinstance(value, _PLAIN):  # of a subclass the number, as it will be read
        return value if type(value).__module__ == "builtins" else json.loads(json.dumps(value))
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        if spans(value):
            return {"shown": f"{value.dtype}{list(value.shape)} in several processes"}
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        inside = [[f.name, inner(getattr(value, f.name, None))] for f in fields]
        return {"type": _name(type(value)), "fields": inside}
    if isinstance(value, tuple) and (names := _of(type(value))) is not None:
        inside = [[name, inner(part)] for name, part in zip(names, value)]
        return {"type": _name(type(value)), "fields": inside}
    if isinstance(value, tuple | list):
        return {"list" if isinstance(value, list) else "tuple": list(map(inner, value))}
    if isinstance(value, dict):
        return {"dict": [[inner(key), inner(part)] for key, part in value.items()]}
    if isinstance(value, set | frozenset):
        return {"set": [inner(part) for part in sorted(value, key=repr)]}
    return _other(value, inner)


def _other(value: Any, inner: Any) -> Any:
    """Functions, what carries them, and all that can only be shown."""
    if isinstance(value, functools.partial):
        named = [[name, inner(part)] for name, part in value.keywords.items()]
        return {"partial": inner(value.func), "args": list(map(inner, value.args)), "named": named}
    if isinstance(value, types.MethodType):
        return {"method": value.__func__.__name__, "of": inner(value.__self__)}
    if isinstance(value, np.dtype):
        return {"dtype": str(value)}
    if isinstance(value, types.FunctionType):
        return {"named": _name(value)} | _inside(value, inner)
    if not _is_trusted(value) and hasattr(value, "__wrapped__"):  # of `jax.jit` and its like
        return inner(value.__wrapped__)
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return {"named": _name(value)}
    if not jax.tree_util.all_leaves([value]):
        children, _ = jax.tree_util.tree_flatten_with_path(value, lambda x: x is not value)
        parts = [[jax.tree_util.keystr(at), inner(part)] for at, part in children]
        return {"type": _name(type(value)), "fields": parts}
    return {"shown": _ADDRESS.sub("", f"{type(value).__name__} {value!r}")[:_SHOWN]}


def _inside(function: types.FunctionType, inner: Any) -> dict[str, Any]:
    """The code of a user's function, and the values that it closes over and reads."""
    names, cells = function.__code__.co_freevars, function.__closure__ or ()
    if _is_trusted(function) and not cells:
        return {}  # of ours the name says it
    closed = [[name, inner(value)] for name, cell in zip(names, cells) for value in _held(cell)]
    if _is_trusted(function):
        return {"closed": closed}
    digest = hashlib.sha256()
    read = _code(digest.update, function, set())
    closed += [[name, inner(value)] for name, value in sorted(read.items())]
    closed += [[name, inner(value)] for name, value in _defaults(function).items()]
    return {"code": digest.hexdigest()[:12], "closed": closed}


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    """Values of parameters that need not be given, by name."""
    values, code = function.__defaults__ or (), function.__code__
    names = code.co_varnames[: code.co_argcount][code.co_argcount - len(values) :]
    return dict(zip(names, values)) | (function.__kwdefaults__ or {})


def _held(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # a cell that is still empty
        return []


def _code(put: Any, function: Any, seen: set[Any]) -> dict[str, Any]:
    """Hash the code of a function and of users' functions that it calls; the values they read."""
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
                read |= _code(put, value, seen)
        elif value is not None and not isinstance(value, types.ModuleType) and not callable(value):
            read[".".join(chain[:last])] = value
    return read


def _is_trusted(thing: Any) -> bool:
    return str(getattr(thing, "__module__", None)).partition(".")[0] in _TRUSTED


def made(found: Any, arrays: list[Any]) -> Any:
    """What `of` was given, of its result and the arrays.

    Raises:
        LookupError, TypeError, ValueError: it is not what `of` gives.
    """
    if isinstance(found, _PLAIN):
        return found
    again = lambda part: made(part, arrays)
    kind = next(iter(found))
    inside = found[kind]
    if kind == "array":
        return arrays[inside]
    if kind == "complex":
        return complex(*inside)
    if kind == "type":
        return _built(inside, [(str(name), again(part)) for name, part in found["fields"]])
    if kind in ("tuple", "list", "set"):
        return {"tuple": tuple, "list": list, "set": set}[kind](map(again, inside))
    if kind == "dict":
        return {again(key): again(part) for key, part in inside}
    if kind == "partial":
        named = {str(name): again(part) for name, part in found["named"]}
        return functools.partial(again(inside), *map(again, found["args"]), **named)
    if kind == "method":
        return getattr(again(found["of"]), inside, Missing(inside))
    if kind == "dtype":
        return jnp.dtype(inside)
    if kind == "named":
        thing = _thing(inside)
        return Missing(inside) if thing is None or found.get("closed") else thing
    if kind == "shown":
        return Missing(inside)
    raise ValueError(f"no structure is called {kind!r}")


def _built(name: str, fields: list[tuple[str, Any]]) -> Any:
    """An object of a class, without running a line of it; a namespace where there is none."""
    cls, names = _thing(name), [field for field, _ in fields]
    if isinstance(cls, type) and dataclasses.is_dataclass(cls):
        if names == [field.name for field in dataclasses.fields(cls)]:
            new = object.__new__(cls)
            for field, value in fields:
                object.__setattr__(new, field, value)
            return new
    if isinstance(cls, type) and issubclass(cls, tuple) and _of(cls) == names:
        return tuple.__new__(cls, [value for _, value in fields])
    return types.SimpleNamespace(**dict(fields))


def _of(cls: type) -> list[str] | None:
    """The fields of a named tuple; None of another one."""
    fields = getattr(cls, "_fields", None)
    return None if fields is None else list(fields)


def _thing(name: str) -> Any:
    """The class or function of a name, in a module that is there or trusted; None if not."""
    module, _, path = name.partition(":")
    if module.partition(".")[0] in _TRUSTED and module not in sys.modules:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    is_it = isinstance(found, type) or callable(found)
    return found if is_it and _name(found) == name else None


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', None)}:{getattr(thing, '__qualname__', '')}"


def flat(found: Any, arrays: list[Any], at: str = "") -> dict[str, str]:
    """The values in a structure by their names, each short enough for a sentence.

    >>> flat(of({"rate": 0.1, "x": np.zeros(2)}, held := []), held)
    {'rate': '0.1', 'x': 'float64[2] 0.0 0.0'}
    """
    if isinstance(found, _PLAIN):
        return {at: repr(found)}
    kind = next(iter(found))
    inside = found[kind]
    if kind == "array":
        return {at: shown(arrays[inside])}
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
        names |= flat(part, arrays, name)
    return names


def shown(leaf: Any) -> str:
    """An array as its numbers where it is small, or as its type and the begin of a digest.

    >>> shown(np.float32(0.5)), shown(np.zeros(100))[:13]
    ('0.5 (float32)', 'float64[100] ')
    """
    kind = ""
    if arguments.is_key(leaf):
        kind, leaf = f"key<{jax.random.key_impl(leaf)}> ", jax.random.key_data(leaf)
    a = np.asarray(leaf)
    numbers = " ".join(map(str, a.ravel())) if a.size <= _FEW else of_bytes(a)[:12]
    return f"{kind}{a.dtype}{list(a.shape)} {numbers}" if a.ndim else f"{numbers} ({a.dtype})"


def of_bytes(a: np.ndarray) -> str:
    """The SHA-256 of the bytes of an array.

    >>> of_bytes(np.zeros(0))[:8]
    'e3b0c442'
    """
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()
