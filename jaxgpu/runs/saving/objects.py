"""Objects rebuilt from the description in a file and its arrays.

Numbers, arrays and containers are restored, and the classes and functions that `catalog` allows.
Nothing is called: an object is created without its constructor, and none of its attributes is read.
An unknown dataclass becomes a `SimpleNamespace`, an unknown function a `Missing`.
"""

import dataclasses
import functools
import sys
import types
from typing import Any

from ..checkpoint import binary
from . import catalog
from .structure import JSON_SCALARS, kind_of


@dataclasses.dataclass(frozen=True)
class Missing:
    """Placeholder for a function or an object that a file can only name.

    >>> build({"named": "notes:force"}, [])
    Missing(name='notes:force')
    """

    name: str  # "module:name", or its repr

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.name} was not loaded; import the module that defines it, and pass "
            "trusted=(module,) if you trust the file"
        )


def build(found: Any, arrays: list[Any], trusted: catalog.Trusted = ()) -> Any:
    """Return the value that `structure.describe_value` described, from its result and the arrays.

    Args:
        found: a structure.
        arrays: the arrays that it refers to by index.
        trusted: imported modules whose classes and functions are restored too.

    Raises:
        LookupError, TypeError, ValueError: `found` is not a structure, or `trusted` not modules.

    >>> build({"tuple": [1, {"array": 0}, {"complex": [0.0, 1.0]}]}, ["x"])
    (1, 'x', 1j)
    """
    return _ObjectBuilder(arrays, catalog.check("load", trusted)).make(found)


def _complete_network(new: Any) -> None:
    """Add the attributes of Flax to a network without a parent."""
    linen = sys.modules.get("flax.linen")
    if linen is not None and isinstance(new, linen.Module):
        object.__setattr__(new, "parent", None)
        linen.Module.__post_init__(new)


class _ObjectBuilder:
    def __init__(self, arrays: list[Any], trusted: tuple[str, ...]) -> None:
        self._arrays, self._trusted = arrays, trusted

    def make(self, found: Any) -> Any:
        if isinstance(found, JSON_SCALARS):
            return found
        kind, inside = kind_of(found)
        if kind == "array":
            return self._arrays[inside]
        if kind == "complex":
            return complex(*inside)
        if kind == "type":
            return self._build_instance(
                str(inside), [(str(n), self.make(x)) for n, x in found["fields"]]
            )
        if kind in ("tuple", "list", "set"):
            return {"tuple": tuple, "list": list, "set": set}[kind](map(self.make, inside))
        if kind == "dict":
            return {self.make(key): self.make(part) for key, part in inside}
        if kind == "partial":
            return self._build_partial(inside, found["args"], found["named"])
        if kind == "method":
            method = catalog.find_method(self.make(found["of"]), str(inside), self._trusted)
            return Missing(str(inside)) if method is None else method
        if kind == "dtype":
            return binary.DTYPES.get(inside, Missing(str(inside)))
        if kind == "named":
            closed = found.get("closed")  # a closure, whose values cannot be restored
            thing = None if closed else catalog.find_function(str(inside), self._trusted)
            return Missing(str(inside)) if thing is None else thing
        if kind == "shown":
            return Missing(str(inside))
        raise ValueError(f"no structure is called {kind!r}")

    def _build_partial(self, inside: Any, args: Any, named: Any) -> Any:
        function = self.make(inside)
        function = function if callable(function) else Missing("a function")
        parts = {str(name): self.make(part) for name, part in named}
        return functools.partial(function, *map(self.make, args), **parts)

    def _build_instance(self, name: str, fields: list[tuple[str, Any]]) -> Any:
        """Create an object of a class without running its code; a namespace if it is unknown."""
        cls, names = catalog.find_class(name, self._trusted), [field for field, _ in fields]
        if cls is None:
            return types.SimpleNamespace(**dict(fields))
        if catalog.tuple_fields(cls) == names:
            return tuple.__new__(cls, [value for _, value in fields])
        if dataclasses.is_dataclass(cls) and names == [f.name for f in dataclasses.fields(cls)]:
            new = object.__new__(cls)
            for field, value in fields:
                object.__setattr__(new, field, value)
            _complete_network(new)
            return new
        return types.SimpleNamespace(**dict(fields))
