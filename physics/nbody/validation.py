"""Validation of bodies before an integration: one precision, and no two bodies at one position."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check

MAX_VALUE = 1e100  # bound on coordinates, velocities and masses; cubes of larger values overflow


def check_numbers(name: str, value: Any, **bounds: Any) -> Array:
    """Check an argument with `ranges.numbers`; make lists arrays in the default precision.

    >>> check_numbers("init: m", [1.0, 2.0], above=0).dtype
    dtype('float32')
    """
    checked = check_magnitude(name, ranges.numbers(name, value, **bounds))
    return checked if hasattr(value, "dtype") else jnp.asarray(checked)


def check_magnitude(name: str, value: Any) -> Any:
    """Return the argument if its values are at most `MAX_VALUE` in size; skip traced values.

    >>> check_magnitude("init: x", [1e101])
    Traceback (most recent call last):
    ValueError: init: x=1e+101 in size; it must be at most 1e+100; rescale it
    """
    defer_check(partial(_refuse_size, name), value)
    return value


def _refuse_size(name: str, value: Any) -> None:
    size = float(np.abs(np.asarray(value)).max(initial=0))
    if size > MAX_VALUE:
        raise ValueError(f"{name}={size:.6g} in size; it must be at most {MAX_VALUE:g}; rescale it")


def one_precision(name: str, **arrays: Array) -> tuple[Array, ...]:
    """Return the arrays in their common floating type; integer arrays are converted to it.

    Args:
        name: the function that was called, the first word of error messages.
        arrays: the arrays by the names of its arguments.

    Raises:
        ValueError: two floating types, or float64 where JAX has it switched off.

    >>> one_precision("init", x=jnp.ones(3), m=jnp.arange(3))[1].dtype
    dtype('float32')
    """
    # the check sees the arguments as passed, because JAX may round them to float32 later
    defer_check(partial(_refuse_types, name, list(arrays)), *arrays.values())
    return unify_dtypes(name, **arrays)


def unify_dtypes(name: str, **arrays: Array) -> tuple[Array, ...]:
    """Return JAX arrays in their common floating type, as `one_precision` does."""
    _refuse_types(name, list(arrays), *arrays.values())
    real = [a.dtype for a in arrays.values() if jnp.issubdtype(a.dtype, jnp.floating)]
    dtype = real[0] if real else jnp.zeros(()).dtype
    return tuple(jnp.asarray(a, dtype) for a in arrays.values())


def _refuse_types(name: str, keys: list[str], *arrays: Array) -> None:
    given = [(key, a) for key, a in zip(keys, arrays) if hasattr(a, "dtype") and a.size]
    real = {key: a.dtype for key, a in given if jnp.issubdtype(a.dtype, jnp.floating)}
    if len(set(real.values())) > 1:
        said = ", ".join(f"{key} is {dtype}" for key, dtype in real.items())
        raise ValueError(f"{name}: {said}; they must have one type; convert them")
    dtype = next(iter(real.values()), None)
    if dtype == np.float64 and jax.dtypes.canonicalize_dtype(np.float64) != dtype:
        raise ValueError(
            f"{name}: {next(iter(real))} is float64, which is disabled in JAX; call it under "
            "jax.enable_x64(True), or convert to float32"
        )


def check_distinct(name: str, x: Array) -> None:
    """Raise if two of the bodies at x [N, 3] share a position; skip traced values."""
    defer_check(partial(_refuse_shared_places, name), x)


def _refuse_shared_places(name: str, x: Array) -> None:
    places, count = np.unique(np.asarray(x), axis=0, return_counts=True)
    if (count > 1).any():
        two = np.flatnonzero((np.asarray(x) == places[np.argmax(count)]).all(1))[:2].tolist()
        raise ValueError(
            f"{name}: bodies {two[0]} and {two[1]} are at the same position; move or merge them"
        )


def check_tracers(name: str, tracers: Array, x: Array) -> None:
    """Raise if one of the tracers [M, 3] is at the position of a massive body [N, 3]."""
    defer_check(partial(_refuse_coincident_tracers, name), tracers, x)


def _refuse_coincident_tracers(name: str, tracers: Array, x: Array) -> None:
    there = np.asarray(tracers)
    for number, place in enumerate(np.asarray(x)):
        hit = np.flatnonzero((there == place).all(1))
        if hit.size:
            raise ValueError(
                f"{name}: tracer {int(hit[0])} coincides with massive body {number}; move it, or "
                "leave it out"
            )


def check_vectors(name: str, value: Any, axis: int = -1) -> Array:
    """Return an array of vectors [..., 3] after a check; N bodies are [N, 3], batch axes lead.

    Kernels whose components come first pass `axis=0`.

    >>> check_vectors("init: x", [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).shape
    (2, 3)

    Raises:
        ValueError: another shape, or a value that is not finite.
        TypeError: the argument is not numeric.
    """
    value = check_numbers(name, value)
    if value.ndim == 0 or value.shape[axis] != 3:
        right = "[..., 3], one row per body" if axis else "[3, ...], components first"
        raise ValueError(f"{name} has shape {list(value.shape)}; it must be {right}; transpose it")
    return value


def check_relative(name: str, x: Any, v: Any, axis: int = -1) -> tuple[Array, Array]:
    """Return relative positions and velocities [..., 3] in one shape and precision, never zero."""
    x, v = check_vectors(f"{name}: x", x, axis), check_vectors(f"{name}: v", v, axis)
    if x.shape != v.shape:
        raise ValueError(f"{name}: x {list(x.shape)}, v {list(v.shape)}; they must have one shape")
    defer_check(partial(_refuse_zero_separations, name, axis), x)
    x, v = one_precision(name, x=x, v=v)
    return x, v


def _refuse_zero_separations(name: str, axis: int, x: Array) -> None:
    if (np.asarray(x) == 0).all(axis).any():
        raise ValueError(f"{name}: x: a relative position is zero; the two bodies must be apart")


def per_pair(name: str, value: Any, shape: tuple[int, ...], dtype: Any, **bounds: Any) -> Array:
    """Broadcast one value, or a value per pair, to the batch `shape` of the pairs."""
    value = ranges.numbers(name, value, **bounds)
    few = len(value.shape) <= len(shape)
    if not few or any(n not in (1, m) for n, m in zip(value.shape[::-1], shape[::-1])):
        raise ValueError(
            f"{name} has shape {list(value.shape)}; it must be one number, or {list(shape)}"
        )
    return jnp.broadcast_to(jnp.asarray(value, dtype), shape)
