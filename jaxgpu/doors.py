"""What is said when a public function fails: the argument that is wrong, in one sentence.

A function that is `explained` costs nothing more while it works. Where it fails by an error of
Python, NumPy or JAX, its arguments are held to their annotations and to the ranges of their fields;
the first that is wrong is named, and the error from below is kept as the cause. An error that no
argument explains, such as one from a function of the user, passes as it is.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxgpu import kinds, ranges
from jaxgpu.arguments import shown


def explained[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The function, which names the argument that is wrong where it fails.

    >>> @explained
    ... def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> twice(1.5)
    3.0
    >>> twice("fast")
    Traceback (most recent call last):
    TypeError: twice: x='fast'; it must be a number
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if _is_said(error) or (why := explanation(function, args, kwargs)) is None:
                raise
            raise why from error

    return called


def explanation(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> Exception | None:
    """The error that names the first argument that is wrong; None where none is.

    >>> def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> explanation(twice, ("fast",), {}), explanation(twice, (1.5,), {})
    (TypeError("twice: x='fast'; it must be a number"), None)
    """
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    name, hints = function.__qualname__, kinds.hints(function)
    for word, value in given.items():
        if word in hints and (want := kinds.need(value, hints[word])):
            return TypeError(f"{name}: {word}={shown(value)}; it must be {want}")
        if callable(value) and word in hints and (count := kinds.takes(value, hints[word])):
            return TypeError(
                f"{name}: {word}=a function that cannot be called with {count} arguments; "
                f"it must take {count}"
            )
    for value in given.values():
        try:
            ranges.check(name, value)
        except (TypeError, ValueError) as error:
            return error.with_traceback(None)
    wide = next((found for value in given.values() for found in _wide(value)), None)
    if wide is None:
        return None
    at, shape = wide
    return ValueError(f"{name}: {at} has shape {shape}; it must be one number; map over it by vmap")


def _wide(spec: Any) -> Iterator[tuple[str, list[int]]]:
    """Fields of a spec, and of specs in it, that hold an array where a number may stand."""
    if not dataclasses.is_dataclass(spec) or isinstance(spec, type):
        return
    hints = kinds.hints(type(spec))
    for field in dataclasses.fields(spec):
        value, hint = getattr(spec, field.name), hints.get(field.name)
        if ranges.KEY not in field.metadata:
            yield from _wide(value)
        elif not isinstance(value, Tracer) and float in getattr(hint, "__args__", (hint,)):
            if isinstance(value, np.ndarray | jax.Array) and value.ndim:
                yield f"{type(spec).__name__}.{field.name}", list(value.shape)


def _is_said(error: Exception) -> bool:
    """Whether an error is a sentence of this package."""
    if "; " not in str(error):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    home = "" if last is None else last.tb_frame.f_globals.get("__name__", "")
    return home.startswith("jaxgpu")
