"""Checks of values against type annotations, for arguments and for fields without a range."""

import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from .arguments import is_key

_ARRAY_TYPES = (jax.Array, np.ndarray, ArrayLike)
_BUILTIN_NOUNS = {str: "a word", bool: "True or False", Path: "a path"}


def requirement(value: Any, hint: Any) -> str | None:
    """Describe the values that an annotation requires, or None if `value` may be one of them.

    An annotation that does not restrict values, such as a type variable, accepts all.

    >>> optional = Callable[[int], int] | None
    >>> requirement("fast", float), requirement(2.0, float), requirement(3, optional)
    ('a number', None, 'a function or None')
    """
    if isinstance(value, Tracer | jax.ShapeDtypeStruct) or type(value) is object:
        return None
    hint = getattr(hint, "__value__", hint)  # of a type alias
    try:
        hash(hint)
    except TypeError:  # an unhashable annotation, such as a list
        return None
    if hint == ArrayLike or hint in (jax.Array, np.ndarray):
        return None if is_key(value) or _is_numeric(value) else "a number or an array of numbers"
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return _describe_union_mismatch(value, typing.get_args(hint))
    if hint in (None, type(None)):
        return None if value is None else "None"
    if hint in (int, float):
        if _is_numeric(value) and np.ndim(value) == 0:
            return None
        noun = "a whole number" if hint is int else "a number"
        return f"{noun} of at most {_largest_int()}" if isinstance(value, int) else noun
    if hint in _BUILTIN_NOUNS:
        right = isinstance(value, (hint, np.bool_) if hint is bool else hint)
        return None if right else _BUILTIN_NOUNS[hint]
    if typing.get_origin(hint) is tuple and isinstance(value, tuple):
        parts = typing.get_args(hint)
        if len(parts) == 2 and parts[1] is Ellipsis:
            wrong = next((said for part in value if (said := requirement(part, parts[0]))), None)
            return wrong and f"a tuple, each part of it {wrong}"
    return _describe_class_mismatch(value, typing.get_origin(hint) or hint)


@functools.cache
def hints(thing: Any) -> dict[str, Any]:
    """Return the annotations of a function or of a class's fields; empty if unreadable.

    >>> hints(hints)["thing"]
    typing.Any
    """
    try:
        return typing.get_type_hints(thing)
    except (NameError, TypeError, AttributeError):
        return {}


def required_arity(function: Callable[..., Any], hint: Any) -> int | None:
    """Return how many arguments an annotation requires, or None if the function accepts them.

    >>> two = Callable[[int, int], int]
    >>> required_arity(lambda: 0, two), required_arity(max, two)
    (2, None)
    """
    options = typing.get_args(hint) if typing.get_origin(hint) is not Callable else ()
    for option in options:
        if typing.get_origin(option) is Callable:
            return required_arity(function, option)
    asked = typing.get_args(hint)
    if typing.get_origin(hint) is not Callable or not isinstance(asked[0], list):
        return None
    return None if _can_call(function, asked[0]) else len(asked[0])


def check_arity(name: str, function: Callable[..., Any], *given: Any) -> None:
    """Raise if a user's function cannot be called with this number of arguments.

    >>> check_arity("run: step", lambda x: x, 1.0, 2.0)
    Traceback (most recent call last):
    TypeError: run: step=a function that cannot be called with 2 arguments; it must take 2
    """
    if not _can_call(function, given):
        raise TypeError(arity_message(name, len(given)))


def arity_message(name: str, count: int) -> str:
    """Return the error message for a function that does not take `count` arguments.

    >>> arity_message("run: check", 2)
    'run: check=a function that cannot be called with 2 arguments; it must take 2'
    """
    return f"{name}=a function that cannot be called with {count} arguments; it must take {count}"


def _can_call(function: Callable[..., Any], given: Sequence[Any]) -> bool:
    """Return True if a function can be called with these, or if it has no signature."""
    try:
        inspect.signature(function).bind(*given)
    except TypeError:
        return False
    except ValueError:  # a function without a signature
        return True
    return True


def _describe_union_mismatch(value: Any, options: tuple[Any, ...]) -> str | None:
    """Do the same as `requirement` for a union."""
    needs = [requirement(value, option) for option in options]
    return None if None in needs else " or ".join(dict.fromkeys(map(str, needs)))


def _describe_class_mismatch(value: Any, kind: Any) -> str | None:
    """Do the same as `requirement` for a class."""
    if kind is Callable:
        return None if callable(value) else "a function"
    if kind in (tuple, list, Sequence):
        many = isinstance(value, tuple | list | np.ndarray | jax.Array)
        return None if many else "a tuple"
    if kind in (dict, Mapping):
        return None if isinstance(value, Mapping) else "a dictionary"
    if not isinstance(kind, type) or kind is Any:
        return None
    if getattr(kind, "_is_protocol", False) and kind.__module__.startswith("jaxgpu"):
        words = [word for word in vars(kind) if word[0] != "_" and callable(vars(kind)[word])]
        right = all(hasattr(value, word) for word in words)
        return None if right else f"{_add_article(kind)}, with {' and '.join(words)}"
    return (
        None
        if isinstance(value, kind) or not dataclasses.is_dataclass(kind)
        else _add_article(kind)
    )


def _add_article(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _is_numeric(value: Any) -> bool:
    """Return True if a value consists of real numbers or truth values that JAX can hold."""
    if isinstance(value, str | bytes | None):
        return False
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= _largest_int()
    if isinstance(value, tuple | list) and any(isinstance(part, Tracer) for part in value):
        return True
    try:
        dtype = getattr(value, "dtype", None) or np.asarray(value).dtype
    except (TypeError, ValueError):
        return False
    return np.dtype(dtype).kind in "biufV"  # V: bfloat16 and the other types of ml_dtypes


def _largest_int() -> int:
    """Return the largest integer that JAX can hold."""
    return int(np.iinfo(jax.dtypes.canonicalize_dtype(np.int64)).max)
