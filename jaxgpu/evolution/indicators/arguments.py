"""Checks of the arguments of indicators: sets of objective vectors as arrays of floats.

Values are checked if they are known, on the host. In a compiled program a point with a NaN is
treated as unevaluated, or as infinitely far.
"""

from functools import partial
from typing import Any

import numpy as np
from jax import Array

from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.ranges import Range, refuse

from ..problem import as_floats, widest_float


def check_points(name: str, value: Any, nan: bool = False) -> Array:
    """Return the set [n, m] as floats; raise if a value is -inf, or NaN without `nan`.

    A point at +inf has no value yet: it is farther than any other.
    """
    a = as_floats(name, value)
    if a.ndim != 2 or 0 in a.shape:
        raise ValueError(
            f"{name} has shape {list(a.shape)}; it must be [points, objectives], at least one each"
        )
    defer_check(partial(_check_values, name, nan), a)
    return a


def _check_values(name: str, nan: bool, a: Array) -> None:
    seen = np.asarray(a)
    bad = (seen == -np.inf) | (np.isnan(seen) & (not nan))
    if bad.any():
        at = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"{name}={seen[tuple(at)]:g} at {at}; it must be a number, or inf for a point without "
            "a value; leave others out"
        )


def check_vector(name: str, value: Any, like: Array, **bounds: Any) -> Array:
    """Return a vector [m] with a finite number per objective of a set, in its float type."""
    a = as_floats(name, value)
    if a.shape != like.shape[1:]:
        raise ValueError(f"{name} has shape {list(a.shape)}; f needs {list(like.shape[1:])}")
    refuse(name, a, Range(**bounds))
    return a.astype(like.dtype)


def promote(a: Array, b: Array) -> tuple[Array, Array]:
    """Convert both arrays to the wider of their float types."""
    dtype = widest_float(a, b)
    return a.astype(dtype), b.astype(dtype)


def check_vectors(name: str, value: Any, like: Array, **bounds: Any) -> Array:
    """Return vectors [w, m] with a number per objective of a set, in its float type."""
    a = as_floats(name, value)
    if a.ndim != 2 or a.shape[1] != like.shape[1] or not a.shape[0]:
        raise ValueError(f"{name} has shape {list(a.shape)}; it must be [rows, {like.shape[1]}]")
    refuse(name, a, Range(**bounds))
    return a.astype(like.dtype)
