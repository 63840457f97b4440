"""Frozen dataclasses that are JAX pytrees, used for all specs and states."""

import dataclasses
import types
from typing import Any, dataclass_transform

import jax

from .explanations import explain_errors, is_explained
from .ranges import RANGE_KEY, Range, refuse


def static(**kwargs: Any) -> Any:
    """Declare a field that is compiled into the program: a size, a name or a function."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


def number(default: Any = dataclasses.MISSING, *, baked: bool = False, **bounds: Any) -> Any:
    """Declare a field of real numbers, which is a leaf, and the range of its values.

    Args:
        default: the default value; without it the field is required.
        baked: True for a static field, which is compiled into the program, instead of a leaf.
        bounds: `above`, `least`, `below`, `most`, `unit`, `infinite`, `none` of `ranges.Range`.
    """
    return _make_ranged_field({"static": True} if baked else {}, default, Range(**bounds))


def size(default: Any = dataclasses.MISSING, **bounds: Any) -> Any:
    """Declare a static integer field, which is compiled into the program, and its range."""
    return _make_ranged_field({"static": True}, default, Range(whole=True, one=True, **bounds))


def _make_ranged_field(metadata: dict[str, Any], default: Any, among: Range) -> Any:
    if default is not dataclasses.MISSING:
        refuse("pytree: default", default, among)
    return dataclasses.field(default=default, metadata={**metadata, RANGE_KEY: among})


@dataclass_transform(
    frozen_default=True, field_specifiers=(dataclasses.field, static, number, size)
)
def pytree[T](cls: type[T]) -> type[T]:
    """Make `cls` a frozen dataclass whose fields are leaves unless marked `static`.

    Numbers stay leaves, so `vmap` over hyperparameters needs no recompilation;
    `dataclasses.replace` makes a changed copy.

    >>> @pytree
    ... class Bodies:
    ...     m: float = number(above=0, unit="kg")
    ...     count: int = size(default=2, least=1)
    >>> jax.tree.leaves(Bodies(m=1.5))
    [1.5]

    Raises:
        TypeError: `cls` is not a class.
    """
    if not isinstance(cls, type):
        raise TypeError(f"pytree: cls={cls!r:.40}; it must be a class")
    if cls.__module__.startswith("jaxgpu"):
        _explain_method_errors(cls)
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True, eq=False)(cls))


def _explain_method_errors(cls: type) -> None:
    """Wrap the public methods of a jaxgpu class so that errors name the invalid argument."""
    members: dict[str, Any] = {}
    for base in (*(b for b in cls.__mro__[:0:-1] if b.__module__.startswith("jaxgpu")), cls):
        members |= vars(base)  # includes methods inherited from classes that are not pytrees
    for word, member in members.items():
        abstract = getattr(member, "__isabstractmethod__", False)
        if word.startswith("_") or abstract or is_explained(member):
            continue
        if isinstance(member, types.FunctionType):
            setattr(cls, word, explain_errors(member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(cls, word, type(member)(explain_errors(member.__func__)))
