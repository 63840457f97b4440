"""Argument checks for models of directions: unit vectors, weights, keys and counts.

Values are checked where they are known, outside of `jit`; under `jit` only shapes and dtypes are.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.devices.precision import scope
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check

from ..arguments import list_to_array, work_dtype

LENGTH_TOL = 1e-5  # tolerance of a length of 1, as in SciPy


def tolerance(dtype: Any, dimension: int) -> float:
    """Return the largest allowed deviation of a unit vector's length from 1, for a dtype.

    It is 1e-5, or eps sqrt(d) if that is more (in float32 from 7000 dimensions on), because a
    length summed from left to right is off by a third of that. In the half precisions it is 4 eps,
    because length and quotient are rounded.

    >>> tolerance(np.float32, 784), tolerance(jnp.bfloat16, 784)
    (1e-05, 0.03125)
    """
    eps = float(jnp.finfo(dtype).eps)
    return 4 * eps if _is_half(dtype) else max(LENGTH_TOL, eps * dimension**0.5)


def check_unit_vectors(name: str, x: Any) -> Array:
    """Return `x` as floating [N, d]: N >= 1 unit vectors in d >= 2 dimensions, or raise."""
    x = _real_array(f"{name}: x", x)
    if x.ndim != 2 or x.shape[0] < 1 or x.shape[1] < 2:
        raise ValueError(
            f"{name}: x has shape {x.shape}; it must be [N, d], N >= 1 unit vectors in d >= 2 "
            "dimensions, one per row; reshape it"
        )
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise TypeError(
            f"{name}: x is {x.dtype}; it must be floating-point; divide its rows by their norms"
        )
    check_lengths(f"{name}: x", x)
    return x


def check_points(name: str, x: Any, dimension: int, rows: bool = False) -> Array:
    """Return `x` as unit vectors [..., d] ([N, d] with `rows`) of the given dimension, or raise."""
    x = _real_array(f"{name}: x", x)
    if x.ndim < 1 or x.shape[-1] != dimension or (rows and x.ndim != 2):
        shape = f"[N, {dimension}]" if rows else f"[..., {dimension}]"
        raise ValueError(f"{name}: x has shape {x.shape}; it must be {shape}; reshape it")
    if not jnp.issubdtype(x.dtype, jnp.floating):
        with scope(x):
            x = x.astype(jnp.result_type(float))
    if x.size:
        check_lengths(f"{name}: x", x)
    return x


def check_lengths(name: str, x: Array, most: bool = False) -> None:
    """Raise if vectors [..., d] with known values do not have length 1 (`most`: at most 1)."""
    defer_check(partial(_check_known_lengths, name, most), x)


def _check_known_lengths(name: str, most: bool, x: Array) -> None:
    with scope(x), jax.ensure_compile_time_eval():  # also for a constant of a traced function
        low, high = (float(end) for end in _length_range(x))
    room = tolerance(x.dtype, x.shape[-1])
    if not np.isfinite(low + high):
        raise ValueError(f"{name} holds nan or infinity; it must be finite; leave such rows out")
    if high > 1 + room or (low < 1 - room and not most):
        if most:
            raise ValueError(
                f"{name} has length {high:.7g}; it must be at most 1; give the mean of unit vectors"
            )
        given = f"length {low:.7g}" if low == high else f"lengths from {low:.7g} to {high:.7g}"
        raise ValueError(
            f"{name} has {given}; they must be 1 within {room:.1g}; divide each vector by its norm"
        )


@jax.jit
def _length_range(x: Array) -> tuple[Array, Array]:
    """Return the minimum and maximum length of vectors [..., d]; nan if any length is nan."""
    x = x.astype(work_dtype(x.dtype))
    largest = jnp.max(jnp.abs(x), -1, keepdims=True)  # avoids overflow of the squares
    scale = jnp.where(largest > 1, largest, 1)
    lengths = scale[..., 0] * jnp.sqrt(jnp.sum((x / scale) ** 2, -1))
    return jnp.min(lengths), jnp.max(lengths)


def to_work_dtype(x: Array) -> Array:
    """Convert unit vectors [N, d] to the computation dtype; renormalise half precisions."""
    if not _is_half(x.dtype):
        return x
    x = x.astype(work_dtype(x.dtype))
    return x / jnp.sqrt(jnp.sum(x * x, 1, keepdims=True))


def check_mean(name: str, mean: Any) -> Array:
    """Check a mean vector [d], d >= 2, of length at most 1."""
    mean = _real_array(f"{name}: mean", mean)
    if mean.ndim != 1 or mean.shape[0] < 2:
        raise ValueError(f"{name}: mean has shape {mean.shape}; it must be [d], d >= 2; use vmap")
    with scope(mean):
        mean = jnp.asarray(mean, None if jnp.issubdtype(mean.dtype, jnp.floating) else float)
    check_lengths(f"{name}: mean", mean, most=True)
    return mean


def check_weights(name: str, weights: Any, x: Array) -> Array:
    """Return the weights [N] of the rows of `x`, checked: finite, not negative, and not all 0."""
    w = ranges.numbers(f"{name}: weights", weights, least=0)
    if np.shape(w) != x.shape[:1]:
        raise ValueError(
            f"{name}: weights has shape {np.shape(w)}, x has {len(x)} rows; they must agree; give "
            "one weight per row"
        )
    work = work_dtype(x.dtype)
    defer_check(partial(_check_weight_sum, name, work), w)
    return jnp.asarray(w, work)


def _check_weight_sum(name: str, work: Any, w: Array) -> None:
    with np.errstate(over="ignore"):
        total = float(np.sum(np.asarray(w).astype(work)))
    if not 0 < total < np.inf:
        raise ValueError(
            f"{name}: weights add up to {total:g}; the sum must be finite and above 0; scale them"
        )


def check_key(name: str, key: Any) -> Any:
    """Return `key` if it is a single random key, typed or raw."""
    typed = hasattr(key, "dtype") and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    raw = hasattr(key, "dtype") and key.dtype == jnp.uint32 and key.ndim == 1
    if not ((typed and key.ndim == 0) or raw):
        kind = f"{key.dtype}{list(key.shape)}" if hasattr(key, "dtype") else repr(key)
        raise TypeError(
            f"{name}: key is {kind[:40]}; it must be one key; pass jax.random.key(seed)"
        )
    return key


def check_direction(name: str, m: Any) -> Array:
    """Return a mean direction [d] as floats after checking that it is a unit vector."""
    m = _real_array(name, m)
    if m.ndim != 1 or m.shape[0] < 2:
        raise ValueError(
            f"{name} has shape {m.shape}; it must be [d], d >= 2; use vmap for several of them"
        )
    with scope(m):
        m = jnp.asarray(m, None if jnp.issubdtype(m.dtype, jnp.floating) else float)
    check_lengths(name, m)
    return m


def check_concentration(name: str, k: Any, m: Array) -> Array:
    """Check a concentration [] >= 0; return it in its own dtype, or else in the dtype of `m`."""
    known = hasattr(k, "dtype") and not getattr(k, "weak_type", False)
    k = ranges.numbers(name, k, (), least=0, infinite=True)
    with scope((m, k) if known else m):
        known = known and jnp.issubdtype(k.dtype, jnp.floating)
        return jnp.asarray(k, k.dtype if known else m.dtype)


def check_count(name: str, value: Any, **bounds: Any) -> int:
    """Check an integer within bounds, the arguments of `ranges.Range`."""
    ranges.refuse(name, value, ranges.Range(whole=True, one=True, **bounds))
    return int(value)


def _real_array(name: str, x: Any) -> Any:
    """Convert real numbers to a NumPy or JAX array of their own precision."""
    x = list_to_array(x) if isinstance(x, list | tuple) else x
    kind = np.dtype(getattr(x, "dtype", type(x)))
    if not (jnp.issubdtype(kind, jnp.floating) or jnp.issubdtype(kind, jnp.integer)):
        raise TypeError(f"{name} is {kind}; it must be real numbers; pass floats")
    return x if hasattr(x, "dtype") else np.asarray(x)


def _is_half(dtype: Any) -> bool:
    return jnp.finfo(dtype).bits < 32
