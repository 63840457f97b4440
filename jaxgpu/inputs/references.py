"""References of a function: all values that decide how JAX traces it.

Users' functions are compared by their code and the values that they close over and read; users'
classes and objects by all attributes. Functions and classes of jaxgpu, JAX, NumPy and similar
libraries are constants, except for closures. Values that may change unnoticed cannot be described.
"""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import re
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.sharding import Mesh, PartitionSpec, Sharding

from .code_reads import FIXED_PACKAGES, code_contents, find_reads, operations

_RANDOM = "numpy.random"  # its generators are stateful
_SCALAR_TYPES = frozenset((bool, int, str, bytes, type(None), type(...), type(NotImplemented)))
_BUILTIN_BASES = (int, float, complex, str, bytes)  # a subclass has attributes and such a value
# attributes of a class that say where it was written, or that follow from the others
_IGNORED_ATTRIBUTES = set(
    "__module__ __qualname__ __name__ __doc__ __dict__ __weakref__ __annotations__ __slots__ "
    "__dataclass_fields__ __dataclass_params__ __match_args__ __orig_bases__ __parameters__ "
    "__type_params__ __abstractmethods__ _abc_impl __firstlineno__ __static_attributes__ "
    "__annotate__ __annotate_func__ __annotations_cache__ __protocol_attrs__ "
    "__non_callable_proto_members__".split()
)
_VARYING_TEXT = re.compile(r" at 0x[0-9a-f]+|\d{7,}")  # addresses and thread ids
_SLOT_BYTES = 8  # bytes per slot of an object
_C_OBJECT_BYTES = 128  # bytes of an object whose class is written in C
_MAX_PARTS = 20_000  # parts; a longer traversal would take more time than a trace


class References(NamedTuple):
    """Hashable values that decide how a function is traced."""

    parts: tuple[Any, ...]  # equal parts: the function would be traced to the same program
    has_user_code: bool  # it includes user code, which may change between calls
    size: int  # bytes of all arrays among the parts


def describe(value: Any) -> References | None:
    """Return the values that decide how a function is traced; None if they are unknown.

    They are valid in this process only: mutable values are compared by identity and by value.

    >>> describe((1.0, "a")) == describe((1.0, "a")), describe(1.0) == describe(2.0)
    (True, False)
    >>> describe(iter([1])) is None
    True
    """
    walk = _ReferenceWalk()
    return References(tuple(walk.parts), walk.foreign, walk.size) if walk.note(value) else None


def digest(value: Any) -> str:
    """Return the digest of all values that `value` refers to, 64 hexadecimal characters.

    It is the same in every process. Values that cannot be described are skipped.

    >>> digest({"k": np.ones(3)}) == digest({"k": np.ones(3)})
    True
    >>> digest({"k": np.ones(3)}) == digest({"k": np.ones(3, int)})
    False
    """
    walk = _ReferenceWalk(lasting=True)
    walk.note(value)
    return hashlib.sha256(repr(walk.parts).encode()).hexdigest()


def nodes(structure: Any) -> Iterator[Any]:
    """Yield the class, the static fields and the number of children of each pytree node.

    >>> [*nodes(jax.tree.structure({"a": 1.0}))]
    [(<class 'dict'>, ('a',), 1), (None, None, 0)]
    """
    children = structure.children()
    kind, static = structure.node_data() or (None, None)
    # the static part of a dictionary is the list of its keys
    yield kind, tuple(static) if isinstance(static, list) else static, len(children)
    for child in children:
        yield from nodes(child)


def is_fixed(thing: Any) -> bool:
    """Return True if a module, function or class is of a package that does not change.

    >>> import json
    >>> is_fixed(np.sin), is_fixed(json.dumps)
    (True, False)
    """
    return _top_level_package(thing) in FIXED_PACKAGES


def _top_level_package(thing: Any) -> str:
    """Return the top-level package of a module, function or class."""
    if isinstance(thing, types.ModuleType):
        module = thing.__name__
    elif isinstance(thing, types.FunctionType):  # `__module__` of a wrapper is the wrapped one's
        module = thing.__globals__.get("__name__")
    else:
        module = thing.__module__
    return str(module).partition(".")[0]


class _IdentityReference:
    """Weak reference, equal only to one of the same live object."""

    def __init__(self, value: Any) -> None:
        self._at, self._value = id(value), weakref.ref(value)

    def __hash__(self) -> int:
        return self._at

    def __eq__(self, other: object) -> bool:
        value = self._value()
        return (
            isinstance(other, _IdentityReference) and value is not None and other._value() is value
        )


class _ReferenceWalk:
    """Traversal of a value, which collects its parts. A `lasting` one is valid in any process.

    Its methods return True if they could describe the value. A lasting traversal continues if not.
    """

    def __init__(self, lasting: bool = False) -> None:
        self.parts: list[Any] = []
        self.foreign, self.size, self._lasting = False, 0, lasting
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps values alive, so that no id is reused

    def note(self, value: Any) -> bool:
        """Collect the parts of `value`."""
        kind = type(value)
        if kind in _SCALAR_TYPES:
            return self._append_parts(kind.__name__, value)
        if id(value) in self._seen:
            return self._append_parts("again", self._seen[id(value)][0])
        self._seen[id(value)] = len(self._seen), value
        try:
            noted = len(self.parts) < _MAX_PARTS and self._note_by_type(kind, value)
        except (RuntimeError, RecursionError):  # changed by another thread, or nested too deeply
            noted = False
        return noted or (self._lasting and self._append_parts("unknown"))

    def _append_parts(self, *parts: Any) -> bool:
        self.parts += parts
        return True

    def _note_all(self, *values: Any) -> bool:
        return all(map(self.note, values))

    def _append_identity(self, value: Any) -> bool:
        # code that can write to the value holds a reference to it, so its id is not reused
        return self._lasting or self._append_parts(id(value))

    def _note_by_type(self, kind: type, value: Any) -> bool:
        note = _NOTE_BY_TYPE.get(kind)
        if note is None:
            note = next((f for base, f in _NOTE_BY_BASE.items() if issubclass(kind, base)), None)
            note = note or _ReferenceWalk._note_object
            if is_fixed(kind):  # a user's class must not be kept alive
                _NOTE_BY_TYPE[kind] = note
        return note(self, value)

    def _reject_value(self, _: Any) -> bool:
        return False

    def _note_repr(self, value: Any) -> bool:
        return self._append_parts(type(value).__name__, repr(value))

    def _note_equal(self, value: Any) -> bool:
        return self._append_parts(type(value).__name__ if self._lasting else value)

    def _note_sequence(self, value: Any) -> bool:
        which = type(value) is tuple or self._append_identity(value)
        return (
            which
            and self._append_parts(type(value).__name__, len(value))
            and self._note_all(*value)
        )

    def _note_mapping(self, value: Any) -> bool:
        factory = getattr(value, "default_factory", None)
        self._append_parts(type(value).__name__, len(value))
        return self._append_identity(value) and self._note_all(factory, *value, *value.values())

    def _note_set(self, value: Any) -> bool:
        self._append_parts(type(value).__name__, len(value))
        if self._lasting:  # the order of a set differs between processes
            return self._append_parts(*sorted(map(digest, value)))
        return self._append_identity(value) and self._note_all(*value)

    def _note_array(self, value: Array) -> bool:
        self.size += value.nbytes
        if not self._lasting:
            return self._append_parts(_IdentityReference(value))
        if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key):
            self._append_parts(str(jax.random.key_impl(value)))
            value = jax.random.key_data(value)
        return value.is_fully_addressable and self._note_numbers(np.asarray(value))

    def _note_numbers(self, value: np.ndarray | np.generic) -> bool:
        self.size += value.nbytes
        numbers = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        self._append_parts(str(value.dtype), value.shape, numbers)
        return not value.dtype.hasobject and (
            isinstance(value, np.generic) or self._append_identity(value)
        )

    def _note_builtin(self, value: Any) -> bool:
        """Collect the name of a C function, and the module or object that it is bound to."""
        return self._append_parts(value.__name__) and self.note(getattr(value, "__self__", None))

    def _is_from_fixed_package(self, thing: Any) -> bool:
        return is_fixed(thing) or (
            self._lasting and _top_level_package(thing) in sys.stdlib_module_names
        )

    def _note_module(self, value: types.ModuleType) -> bool:
        return self._is_from_fixed_package(value) and self._append_parts(value.__name__)

    def _note_partial(self, value: functools.partial[Any]) -> bool:
        return self._append_parts("partial") and self._note_all(
            value.func, value.args, value.keywords
        )

    def _note_method(self, value: types.MethodType) -> bool:
        return self._append_parts("method") and self._note_all(value.__func__, value.__self__)

    def _note_descriptor(self, value: Any) -> bool:
        """Note a slot or method of a class written in C by its type and name."""
        return self._append_parts(type(value).__name__, value.__name__)

    def _note_wrapper(self, value: Any) -> bool:
        return self._append_parts(type(value).__name__) and self.note(value.__func__)

    def _note_property(self, value: property) -> bool:
        return self._append_parts("property") and self._note_all(value.fget, value.fset, value.fdel)

    def _note_function(self, function: types.FunctionType) -> bool:
        cells, code = function.__closure__ or (), function.__code__
        if self._is_from_fixed_package(function):  # only the values of its closure may change
            named = function.__module__, function.__qualname__
            return self._append_parts(
                named if self._lasting else code_contents(code)
            ) and self._note_cells(cells)
        self.foreign = True
        reads = find_reads(code)
        if self._lasting:
            for name, constant in operations(code):
                self._append_parts(name)
                self.note(constant)
        else:
            self._append_parts(
                _IdentityReference(function) if reads.rebinds else code_contents(code),
                id(function.__globals__),
            )
        return (
            (not reads.untracked or self._lasting)
            and self._note_cells(cells)
            and self._note_all(function.__defaults__, function.__kwdefaults__)
            and self._note_all(*_relevant_attributes(vars(function)))
            and all(self._note_chain(function.__globals__, chain) for chain in reads.chains)
        )

    def _note_cells(self, cells: tuple[types.CellType, ...]) -> bool:
        try:
            return self._note_all(*(cell.cell_contents for cell in cells))
        except ValueError:  # an empty cell
            return self._lasting

    def _note_chain(self, found: dict[str, Any], chain: tuple[str, ...]) -> bool:
        """Collect the value of a chain of names such as `module.rate`, from the globals on."""
        module = None
        for name in chain:
            if name not in found:  # a builtin, or a name that `__getattr__` of a module provides
                lazy = module is not None and "__getattr__" in found
                return self._append_parts(None) and (self._lasting or not lazy)
            value = found[name]
            if not isinstance(value, types.ModuleType):
                return self.note(value)
            module = value
            if module.__name__.startswith(_RANDOM) and name != chain[-1]:
                return self._lasting
            if self._is_from_fixed_package(module) and "random" not in chain:
                return self._append_parts(module.__name__)
            found = vars(module)
        return self.note(module)

    def _note_class(self, cls: type) -> bool:
        if self._is_from_fixed_package(cls):
            named = cls.__module__, cls.__qualname__
            return self._append_parts(named if self._lasting else _IdentityReference(cls))
        self.foreign = True
        which = self._lasting or self._append_parts(_IdentityReference(cls))
        return which and self._note_all(type(cls), *cls.__bases__, *_relevant_attributes(vars(cls)))

    def _note_object(self, value: Any) -> bool:
        """Collect the class and the attributes of an object, if it has no other contents."""
        kind = type(value)
        if kind.__module__.startswith(_RANDOM):
            return False
        if self._lasting and self._is_from_fixed_package(kind) and not is_fixed(kind):
            return self._append_parts(
                kind.__name__, _VARYING_TEXT.sub("", repr(value))
            )  # a path, a date, a lock
        if (
            is_fixed(kind)
            and kind.__basicsize__ > _C_OBJECT_BYTES
            and hasattr(value, "__wrapped__")
        ):
            return self._append_parts(kind.__name__) and self.note(
                value.__wrapped__
            )  # made by `jax.jit`
        slots = [
            (name, slot)
            for base in kind.__mro__
            for name, slot in vars(base).items()
            if isinstance(slot, types.MemberDescriptorType)
        ]
        if not self._note_base(kind, value, len(slots)):
            return False
        inside = dict(getattr(value, "__dict__", {}))
        for name, slot in slots:
            with contextlib.suppress(AttributeError):  # an empty slot
                inside[name] = slot.__get__(value)
        settings, is_flax = getattr(kind, "__dataclass_params__", None), _is_flax_module(kind)
        if is_flax or (settings is not None and is_fixed(kind)):  # the rest follows from the fields
            inside = {f.name: inside.get(f.name) for f in dataclasses.fields(value)}
        if not is_flax and (settings is None or not settings.frozen):
            self._append_identity(value)
        return self.note(kind) and self._note_all(*_relevant_attributes(inside))

    def _note_base(self, kind: type, value: Any, slots: int) -> bool:
        """Collect the value of a builtin base class; False if a C class may hide more."""
        for base in _BUILTIN_BASES:
            if issubclass(kind, base):
                return self._append_parts(base.__name__, base.__repr__(value))
        if issubclass(kind, tuple | list):
            return self._append_parts(len(value)) and self._note_all(*value)
        if issubclass(kind, dict):
            return self._append_parts(len(value)) and self._note_all(*value.keys(), *value.values())
        return kind.__basicsize__ == object.__basicsize__ + _SLOT_BYTES * slots


def _is_flax_module(kind: type) -> bool:
    """Return True if a class is a `flax.linen.Module`, whose fields are read-only."""
    names = ((base.__module__, base.__name__) for base in kind.__mro__)
    return ("flax.linen.module", "Module") in names


def _relevant_attributes(inside: Mapping[str, Any]) -> list[Any]:
    """Return names and values of attributes, without `__module__` and the like."""
    return [part for pair in inside.items() if pair[0] not in _IGNORED_ATTRIBUTES for part in pair]


_NOTE_BY_TYPE: dict[Any, Callable[..., bool]] = {
    np.ndarray: _ReferenceWalk._note_numbers,
    property: _ReferenceWalk._note_property,
    **dict.fromkeys((float, complex, range, slice), _ReferenceWalk._note_repr),
    **dict.fromkeys((set, frozenset), _ReferenceWalk._note_set),
    **dict.fromkeys((tuple, list, collections.deque), _ReferenceWalk._note_sequence),
    **dict.fromkeys(
        (dict, collections.OrderedDict, collections.defaultdict, types.MappingProxyType),
        _ReferenceWalk._note_mapping,
    ),
    **dict.fromkeys((staticmethod, classmethod), _ReferenceWalk._note_wrapper),
    **dict.fromkeys(
        (types.BuiltinFunctionType, types.MethodWrapperType, np.ufunc), _ReferenceWalk._note_builtin
    ),
    **dict.fromkeys(
        (
            types.MemberDescriptorType,
            types.GetSetDescriptorType,
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
        ),
        _ReferenceWalk._note_descriptor,
    ),
    **dict.fromkeys(
        (typing.TypeVar, types.GenericAlias, types.UnionType), _ReferenceWalk._note_repr
    ),
}
_NOTE_BY_BASE: dict[Any, Callable[..., bool]] = {
    types.FunctionType: _ReferenceWalk._note_function,
    types.MethodType: _ReferenceWalk._note_method,
    types.ModuleType: _ReferenceWalk._note_module,
    type: _ReferenceWalk._note_class,
    Tracer: _ReferenceWalk._reject_value,
    Array: _ReferenceWalk._note_array,
    np.memmap: _ReferenceWalk._note_numbers,
    np.generic: _ReferenceWalk._note_numbers,
    np.dtype: _ReferenceWalk._note_repr,
    functools.partial: _ReferenceWalk._note_partial,
    **dict.fromkeys(
        (Mesh, PartitionSpec, Sharding, jax.tree_util.PyTreeDef, jax.Device),
        _ReferenceWalk._note_equal,
    ),
}
