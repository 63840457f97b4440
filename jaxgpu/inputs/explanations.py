"""Error messages of public functions: explain a failed call by naming the invalid argument.

A function decorated with `explain_errors` has no overhead while it succeeds. If it raises an error
of Python, NumPy or JAX, its arguments are checked against their annotations and the ranges of their
fields. The first invalid argument is reported, with the original error as the cause. If no argument
is invalid by itself, for example because shapes do not match each other, all of them are listed.
Errors from functions of the user and JAX's tracing errors pass through unchanged.
"""

import dataclasses
import functools
import inspect
import os
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from . import ranges, type_hints
from .arguments import format_value, key
from .calls import CompiledFunction


def explain_errors[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a public function so that its errors name the invalid argument.

    A call from outside of `jit` runs as one program (`inputs.calls`), unless the function is marked
    `on_host`.

    >>> @explain_errors
    ... def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> twice(1.5)
    3.0
    >>> twice("fast")
    Traceback (most recent call last):
    TypeError: twice: x='fast'; it must be a number
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        compiled = vars(wrapped)[_EXPLAINED]
        try:
            return function(*args, **kwargs) if compiled is None else compiled(args, kwargs)
        except Exception as error:
            if not _is_raised_by_libraries(error, function):  # from a function of the user
                raise
            guessed = _GUESS in str(error)  # by an inner public function, which may know less
            if _is_own_message(error) and not guessed:
                raise
            why = find_error(function, args, kwargs)
            if why is None and not guessed:
                why = _report_all_arguments(function, args, kwargs, error)
            if why is None:
                raise
            raise why from error

    plain = getattr(function, _ON_HOST, False)
    # an attribute: its closure would count as a part of each user's function that calls it
    vars(wrapped)[_EXPLAINED] = (
        None if plain else CompiledFunction(function, keeps=getattr(function, _KEEPS, ""))
    )
    return wrapped


def is_explained(member: Any) -> bool:
    """Return True if a function is decorated already, as one of a base class may be."""
    return hasattr(getattr(member, "__func__", member), _EXPLAINED)


def on_host[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function with side effects or loops, which `explain_errors` must call as written."""
    vars(function)[_ON_HOST] = True
    return function


def keeps_64_bits[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that runs with 64-bit types if any argument has one."""
    vars(function)[_KEEPS] = "all"
    return function


def keeps_64_bits_of_specs[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that runs with 64-bit types if a field of a spec has one."""
    vars(function)[_KEEPS] = "specs"
    return function


def find_error(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]
) -> Exception | None:
    """Return an error that names the first invalid argument, or None if all are valid.

    >>> def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> find_error(twice, ("fast",), {}), find_error(twice, (1.5,), {})
    (TypeError("twice: x='fast'; it must be a number"), None)
    """
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    name, hints = function.__qualname__, type_hints.hints(function)
    for word, value in given.items():
        if word == "key" and hints.get(word) is jax.Array and (why := _check_key(name, value)):
            return why
        if word in hints and (want := type_hints.requirement(value, hints[word])):
            return TypeError(f"{name}: {word}={format_value(value)}; it must be {want}")
        if (
            callable(value)
            and word in hints
            and (count := type_hints.required_arity(value, hints[word]))
        ):
            return TypeError(type_hints.arity_message(f"{name}: {word}", count))
    for value in given.values():
        try:
            ranges.check(name, value)
        except (TypeError, ValueError) as error:
            return error.with_traceback(None)
    odd = next((found for value in given.values() for found in _non_scalar_fields(value)), None)
    return None if odd is None else ValueError(f"{name}: {odd}")


_EXPLAINED, _ON_HOST, _KEEPS = "_explained", "_on_host", "_keeps_64_bits"  # attributes
_GUESS = "cannot be computed from"
_ARGUMENT_ERRORS = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError)
_INSTALLED = tuple(
    {f"{sysconfig.get_path(word)}{os.sep}" for word in ("stdlib", "purelib", "platlib")}
)
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"


def _report_all_arguments(
    function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], error: Exception
) -> Exception | None:
    """Return an error that lists all arguments, or None if their shapes cannot be the reason."""
    known = isinstance(error, _ARGUMENT_ERRORS) or type(error).__module__.startswith("flax.")
    if not known or isinstance(error, jax.errors.JAXTypeError):
        return None
    if isinstance(error, jax.errors.JAXIndexError) or not _is_raised_by_libraries(error):
        return None
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    parts = [f"{word} {_describe(value)}" for word, value in given.items() if word != "self"]
    cause = " ".join(str(error).split())[:120]
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(
        f"{function.__qualname__}: {_GUESS} {', '.join(parts)[:200]}; compare their shapes with "
        f"its documentation ({type(error).__name__}, {cause})"
    )


def _describe(value: Any) -> str:
    """Return a short description of a value: its type and shape, its length or its class."""
    if isinstance(value, tuple | list):
        kind = "a tuple" if isinstance(value, tuple) else "a list"
        return f"{kind} of {len(value)}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    if dataclasses.is_dataclass(value):
        return f"a {type(value).__name__}"
    return format_value(value)


def _is_raised_by_libraries(error: Exception, function: Any = None) -> bool:
    """Return True if only this and installed packages ran between the call and the error.

    function: one whose own frames count as those of this package.
    """
    mine = getattr(function, "__code__", None)
    last = error.__traceback__
    while last is not None:
        code = last.tb_frame.f_code
        file = code.co_filename
        generated = file.startswith("<") and last.tb_frame.f_globals.get("__name__") != "__main__"
        known = generated or file.startswith((_PACKAGE, *_INSTALLED)) or code is mine
        if not known:
            return False
        last = last.tb_next
    return True


def _check_key(name: str, value: Any) -> Exception | None:
    """Return an error if the argument `key` is not a random key."""
    if isinstance(value, Tracer):
        return None
    try:
        key(f"{name}: key", value)
    except (TypeError, ValueError) as error:
        return error.with_traceback(None)
    return None


def _non_scalar_fields(spec: Any) -> Iterator[str]:
    """Yield a message per field that holds an array for a number, or a list for an array."""
    if not dataclasses.is_dataclass(spec) or isinstance(spec, type):
        return
    hints = type_hints.hints(type(spec))
    for field in dataclasses.fields(spec):
        value, hint = getattr(spec, field.name), hints.get(field.name)
        at = f"{type(spec).__name__}.{field.name}"
        if isinstance(value, list) and hint is jax.Array:
            yield f"{at} is a list; it must be an array; give jnp.asarray of it"
        elif ranges.RANGE_KEY not in field.metadata:
            yield from _non_scalar_fields(value)
        elif not isinstance(value, Tracer) and float in getattr(hint, "__args__", (hint,)):
            listed = isinstance(value, list)
            if listed or (isinstance(value, np.ndarray | jax.Array) and value.ndim):
                shape = [len(value)] if listed else list(value.shape)
                yield f"{at} has shape {shape}; it must be one number; map over it by vmap"


def _is_own_message(error: Exception) -> bool:
    """Return True if an error was raised by this package with a complete message."""
    if "; " not in str(error):
        return False
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    home = "" if last is None else last.tb_frame.f_globals.get("__name__", "")
    return home.startswith("jaxgpu")
