"""What a run is: digests of its program and of the numbers that it starts from.

Two programs have one digest where they do the same operations on the same constants: the digest is
taken over the traced program (its jaxpr, with every program inside it) and over the values of the
arrays and numbers that are closed over, so another function, bound, material or step size is
another program, whatever it is called. Names of variables and lines of source do not count.
"""

import dataclasses
import functools
import hashlib
import re
import types
import weakref
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.extend import core
from jax.sharding import Mesh

from jaxgpu.devices.processes import blocks, spans

_PLAIN = int | float | complex | str | bytes | type(None) | np.dtype
_FIXED = set(
    "jaxgpu jax jaxlib numpy scipy optax flax math functools operator itertools builtins".split()
)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def of_program(traced: Any) -> str:
    """The digest of a traced program and of the constants in it, 64 hexadecimal characters.

    >>> one, two, same = (jax.make_jaxpr(lambda x, a=a: x + a)(0.0) for a in (1.0, 2.0, 1.0))
    >>> of_program(one) == of_program(same), of_program(one) == of_program(two)
    (True, False)
    """
    digest = hashlib.sha256()
    _closed(digest.update, traced)
    return digest.hexdigest()


def of_arrays(tree: Any) -> str:
    """The digest of the leaves of a pytree: names, dtypes, shapes and bytes.

    >>> of_arrays({"x": np.zeros(3)}) == of_arrays({"x": np.zeros(3)})
    True
    >>> of_arrays({"x": np.zeros(3)}) == of_arrays({"y": np.zeros(3)})
    False
    """
    digest = hashlib.sha256()
    for path, leaf in jax.tree.leaves_with_path(tree):
        digest.update(jax.tree_util.keystr(path).encode())
        _value(digest.update, leaf)
    return digest.hexdigest()


def joined(*digests: str) -> str:
    """One digest of several.

    >>> joined("of a program", "of a start")[:8]
    'f9dfd4ff'
    """
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def of_references(value: Any) -> Any:
    """What decides how a function would be traced, hashable; None where it cannot be told.

    Numbers, arrays and functions that users' functions close over or read from their module count
    by value, so that a function whose surroundings have changed is traced anew. Functions of this
    package and of JAX count by themselves; an object that may change unseen cannot be told.

    >>> of_references((1.0, "a")) == of_references((1.0, "a"))
    True
    """
    found = _References()
    return tuple(found.parts) if found.tell(value) else None


class _Same:
    """A value that equals itself alone, which is not kept alive: once gone, it equals none."""

    def __init__(self, value: Any) -> None:
        self._at, self._value = id(value), weakref.ref(value)

    def __hash__(self) -> int:
        return self._at

    def __eq__(self, other: object) -> bool:
        value = self._value()
        return isinstance(other, _Same) and value is not None and other._value() is value


class _References:
    """A walk over functions and all that they refer to."""

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self._seen: dict[int, Any] = {}

    def tell(self, value: Any) -> bool:
        """Whether all of `value` can be told; its parts are noted on the way."""
        if isinstance(value, _PLAIN):
            self.parts.append((type(value), repr(value)))
            return True
        if id(value) in self._seen:
            return True
        self._seen[id(value)] = value
        if isinstance(value, np.ndarray | np.generic):
            return self._note(hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest())
        if isinstance(value, tuple | list | set | frozenset):
            return self._note(len(value)) and all(self.tell(part) for part in value)
        if isinstance(value, dict):
            return self._note(len(value)) and all(map(self.tell, (*value, *value.values())))
        if isinstance(value, Array):
            return not isinstance(value, Tracer) and self._note(_Same(value))
        if isinstance(value, Mesh):  # equal where its devices, axes and kinds of axes are
            return self._note(value)
        if isinstance(value, types.ModuleType | type):
            return self._note(_Same(value)) and (isinstance(value, type) or _is_ours(value))
        if dataclasses.is_dataclass(value):
            inside = [getattr(value, f.name) for f in dataclasses.fields(value)]
            return self._note(type(value)) and all(map(self.tell, inside))
        if isinstance(value, functools.partial | types.MethodType):  # made anew at each use
            return self._note(type(value)) and self._function(value)
        return callable(value) and self._note(_Same(value)) and self._function(value)

    def _note(self, part: Any) -> bool:
        self.parts.append(part)
        return True

    def _function(self, function: Any) -> bool:
        if isinstance(function, functools.partial):
            return self.tell((function.func, function.args, function.keywords))
        if isinstance(function, types.MethodType):
            return self.tell((function.__func__, function.__self__))
        if isinstance(function, types.BuiltinFunctionType | np.ufunc):
            return True
        ours = _is_ours(function)
        if ours and not isinstance(function, types.FunctionType):
            return True
        if wrapped := getattr(function, "__wrapped__", None):
            return self.tell(wrapped)
        if not isinstance(function, types.FunctionType):
            return False
        names = () if ours else _names(function.__code__)  # our own modules do not change
        read = [function.__globals__[name] for name in names if name in function.__globals__]
        try:
            closed = [cell.cell_contents for cell in function.__closure__ or ()]
        except ValueError:  # a cell that is still empty
            return False
        inside = (read, closed, function.__defaults__, function.__kwdefaults__)
        return all(map(self.tell, inside))


def _names(code: types.CodeType) -> list[str]:
    """Names that a function, and the functions within it, may read from their module."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return sorted({*code.co_names, *(name for c in inner for name in _names(c))})


def _is_ours(thing: Any) -> bool:
    """Whether a module, or a function of one, is fixed: of this package, JAX, NumPy and kin."""
    module = thing.__name__ if isinstance(thing, types.ModuleType) else thing.__module__
    return str(module).partition(".")[0] in _FIXED


def _closed(put: Any, program: Any) -> None:
    for constant in program.consts:
        _value(put, constant)
    _jaxpr(put, program.jaxpr)


def _jaxpr(put: Any, jaxpr: Any) -> None:
    """Operations in their order; variables by the number of their first appearance."""
    numbers: dict[int, int] = {}

    def name(atom: Any) -> None:
        if isinstance(atom, core.Literal):
            _value(put, atom.val)
        else:
            put(f"{numbers.setdefault(id(atom), len(numbers))}:{atom.aval.str_short()} ".encode())

    for variable in (*jaxpr.constvars, *jaxpr.invars):
        name(variable)
    for equation in jaxpr.eqns:
        put(equation.primitive.name.encode())
        for atom in (*equation.invars, *equation.outvars):
            name(atom)
        for key in sorted(equation.params):
            put(f"{key}=".encode())
            _parameter(put, equation.params[key])
    for atom in jaxpr.outvars:
        name(atom)


def _parameter(put: Any, value: Any) -> None:
    """A parameter of an operation, without what differs between two processes."""
    if hasattr(value, "jaxpr") and hasattr(value, "consts"):
        _closed(put, value)
    elif hasattr(value, "eqns"):
        _jaxpr(put, value)
    elif isinstance(value, (tuple, list)):
        for part in value:
            _parameter(put, part)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            put(str(key).encode())
            _parameter(put, value[key])
    elif isinstance(value, (set, frozenset)):
        put(",".join(sorted(map(str, value))).encode())
    elif isinstance(value, (np.ndarray, np.generic, Array)):
        _value(put, value)
    elif callable(value):
        _function(put, getattr(value, "callback_func", value))
    else:
        put(_ADDRESS.sub("", f"{type(value).__qualname__} {value} ").encode())


def _function(put: Any, function: Any) -> None:
    """A function of Python: a rule of derivatives, which is traced where it counts, or a call back.

    Of a call back to the host the code and the numbers that it closes over are all there is.
    """
    put(getattr(function, "__qualname__", type(function).__qualname__).encode())
    if code := getattr(function, "__code__", None):
        put(code.co_code + _ADDRESS.sub("", str(code.co_consts)).encode())
    for cell in getattr(function, "__closure__", None) or ():
        if isinstance(cell.cell_contents, (int, float, np.ndarray, np.generic)):
            _value(put, cell.cell_contents)


def _value(put: Any, value: Any) -> None:
    if hasattr(value, "dtype") and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
        put(str(jax.random.key_impl(value)).encode())
        value = jax.random.key_data(value)
    if spans(value):
        put(f"{value.dtype}{value.shape}".encode())
        for block in blocks(value):
            put(np.ascontiguousarray(block).tobytes())
        return
    a = np.asarray(value)
    put(f"{a.dtype}{a.shape}".encode())
    put(np.ascontiguousarray(a).tobytes())
