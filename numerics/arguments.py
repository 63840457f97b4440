"""What a special function is given: one shape, one floating dtype, or a clear sentence."""

from math import inf
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxgpu.devices.precision import scope


def prepare(
    name: str, v: ArrayLike, x: ArrayLike, letters: tuple[str, str] = ("v", "x")
) -> tuple[Array, Array, np.dtype]:
    """Broadcast `v` and `x` in the dtype they are computed in; the result's dtype comes third.

    Integers take the dtype of the other argument, or the default float; so do lists of numbers.
    Half precisions are computed in float32. A float64 array stays float64 also where 64-bit JAX is
    switched off. `letters` are the names of the arguments in errors.

    >>> prepare("f", 1, jnp.float16(2))
    (Array(1., dtype=float32), Array(2., dtype=float32), dtype('float16'))
    """
    (v, x), result = broadcast(name, dict(zip(letters, (v, x))))
    return v, x, result


def broadcast(name: str, arguments: dict[str, Any]) -> tuple[list[Array], np.dtype]:
    """The arguments, given by their names, in one shape and the dtype they are computed in.

    The dtype of the result comes second; `prepare` says which it is.
    """
    values = {letter: _number(value) for letter, value in arguments.items()}
    for letter, value in values.items():
        kind = np.dtype(getattr(value, "dtype", type(value)))
        if not _is_real(kind):
            raise TypeError(
                f"{name}: {letter} is {kind}; it must be real numbers; pass floats or integers"
            )
    shapes = {letter: np.shape(value) for letter, value in values.items()}
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{letter} has shape {given}" for letter, given in shapes.items())
        raise ValueError(
            f"{name}: {said}; the shapes must broadcast; insert axes of length 1 where they differ"
        ) from None
    kinds = [np.dtype(getattr(value, "dtype", type(value))) for value in values.values()]
    floats = [a for a, kind in zip(values.values(), kinds) if jnp.issubdtype(kind, jnp.floating)]
    with scope(floats), np.errstate(over="ignore"):  # what is too large for a float is infinite
        result = jnp.result_type(*floats, float)
        work = computed_in(result)
        return [jnp.broadcast_to(jnp.asarray(a, work), shape) for a in values.values()], result


def computed_in(kind: Any) -> np.dtype:
    """The dtype that numbers of a floating dtype are computed in: at least float32."""
    return np.dtype(kind if jnp.finfo(kind).bits >= 32 else np.float32)


def least(v: ArrayLike) -> float:
    """The least of `v` where that can be seen when tracing, else minus infinity."""
    if not isinstance(v, int | float | np.ndarray | np.generic) or not np.size(v):
        return -inf
    low = float(np.min(_number(v)))
    return low if low == low else -inf


def _number(value: Any) -> Any:
    """A list as an array of the default dtype, a whole number of any size as one that fits."""
    if isinstance(value, list | tuple):
        return listed(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 31:
        try:
            return float(value)
        except OverflowError:
            return inf if value > 0 else -inf
    return value


def listed(value: list | tuple) -> Any:
    """A nested list as an array; what makes none stays as it is, and is refused by its kind."""
    parts = jax.tree.leaves(value)
    plain = all(type(part) in (int, float) for part in parts)
    try:
        with scope(parts):  # numbers that know their dtype keep it
            return (
                np.asarray(value, float).astype(jnp.result_type(float)) if plain else _stack(value)
            )
    except (TypeError, ValueError):
        return np.asarray(None)


def _stack(value: list | tuple) -> Any:
    """The list as NumPy reads it, or as JAX does where parts of it are traced."""
    traced = any(isinstance(part, Tracer) for part in jax.tree.leaves(value))
    return jnp.asarray(value) if traced else np.asarray(value)


def _is_real(kind: np.dtype) -> bool:
    if kind.name in ("float128", "float96", "longdouble"):  # no device has it
        return False
    return bool(jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer))
