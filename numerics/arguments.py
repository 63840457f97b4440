"""Arguments of special functions: broadcast to one shape and one floating dtype, or rejected."""

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
    """Return `v` and `x` broadcast in the dtype of the computation, and the dtype of the result.

    Integers and lists of numbers take the dtype of the other argument, or the default float. Half
    precisions are computed in float32. A float64 array stays float64 even if 64-bit JAX is off.
    `letters` are the names of the arguments in error messages.

    >>> prepare("f", 1, jnp.float16(2))
    (Array(1., dtype=float32), Array(2., dtype=float32), dtype('float16'))
    """
    (v, x), result = broadcast(name, dict(zip(letters, (v, x))))
    return v, x, result


def broadcast(name: str, arguments: dict[str, Any]) -> tuple[list[Array], np.dtype]:
    """Return the arguments in one shape and the dtype of the computation, and the result's dtype.

    `arguments` maps names to values. The dtypes follow the rules of `prepare`.
    """
    values = {letter: _convert_value(value) for letter, value in arguments.items()}
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
    with scope(floats), np.errstate(over="ignore"):  # values too large for a float become infinite
        result = jnp.result_type(*floats, float)
        work = work_dtype(result)
        return [jnp.broadcast_to(jnp.asarray(a, work), shape) for a in values.values()], result


def work_dtype(kind: Any) -> np.dtype:
    """Return the dtype in which values of a floating dtype are computed: at least float32."""
    return np.dtype(kind if jnp.finfo(kind).bits >= 32 else np.float32)


def known_min(v: ArrayLike) -> float:
    """Return the minimum of `v` if it is known at trace time, else minus infinity."""
    if not isinstance(v, int | float | np.ndarray | np.generic) or not np.size(v):
        return -inf
    low = float(np.min(_convert_value(v)))
    return low if low == low else -inf


def _convert_value(value: Any) -> Any:
    """Return `value` with a list as an array, and an integer of 32 bits or more as a float."""
    if isinstance(value, list | tuple):
        return list_to_array(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 31:
        try:
            return float(value)
        except OverflowError:
            return inf if value > 0 else -inf
    return value


def list_to_array(value: list | tuple) -> Any:
    """Convert a nested list to an array; the dtype check rejects what cannot be converted."""
    parts = jax.tree.leaves(value)
    plain = all(type(part) in (int, float) for part in parts)
    try:
        with scope(parts):  # scalars with a dtype of their own keep it
            return (
                np.asarray(value, float).astype(jnp.result_type(float)) if plain else _stack(value)
            )
    except (TypeError, ValueError):
        return np.asarray(None)


def _stack(value: list | tuple) -> Any:
    """Convert a list by NumPy, or by JAX if some of its items are traced."""
    traced = any(isinstance(part, Tracer) for part in jax.tree.leaves(value))
    return jnp.asarray(value) if traced else np.asarray(value)


def _is_real(kind: np.dtype) -> bool:
    if kind.name in ("float128", "float96", "longdouble"):  # no device supports these types
        return False
    return bool(jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer))
