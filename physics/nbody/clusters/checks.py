"""Validation of the arguments of clusters, and of energy conservation during a run.

Bodies [N, 3] are converted here to [6, N], components first, the layout of all internal functions.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check

from ..validation import check_magnitude, check_numbers, one_precision

TOLERANCE = 1e-3  # maximum energy error of a run; a larger error makes its results meaningless


def check_bodies(name: str, x: Any, v: Any, m: Any, tracers: Any) -> tuple[np.ndarray, ...]:
    """Check bodies; return stars [6, N], masses [N] and tracers [6, M] (M = 0 for None) in float64.

    Args:
        name: name of the calling function.
        x: positions of the stars [N, 3].
        v: their velocities [N, 3].
        m: their masses [N].
        tracers: positions and velocities [M, 3], or None.

    Raises:
        ValueError: another shape, values that are not finite, masses that are not positive, fewer
            than two stars, bodies at the same position.
        TypeError: an argument that is not numeric.
    """
    stars = _to_float64_states(name, "", x, v)
    points = np.zeros((6, 0))
    if tracers is not None:
        points = _to_float64_states(name, "tracers.", *_unpack_tracers(name, tracers))
    if stars.shape[1] < 2:
        raise ValueError(f"{name}: x: {stars.shape[1]} stars; must be [N, 3], N at least 2")
    m = _to_float64(f"{name}: m", m, (stars.shape[1],))
    if (m <= 0).any():
        where = int(np.argmin(m))
        raise ValueError(
            f"{name}: m: star {where} has {m[where]}; must be positive; or make it a tracer"
        )
    _refuse_shared_places(name, stars, points)
    return stars, m, points


def check_init(
    name: str, spec: Any, x: Any, v: Any, m: Any, tracers: Any
) -> tuple[Array, Array, Array]:
    """Return stars [6, N], masses [N] and tracers [6, M] for an initial state.

    Traced values are not checked.

    Args:
        name: name of the calling function.
        spec: settings of the integrator.
        x: positions of the stars [N, 3].
        v: their velocities [N, 3].
        m: their masses [N].
        tracers: positions and velocities [M, 3]; None for none.

    Raises:
        ValueError: another shape, values that are not finite or out of range, two floating types,
            bodies at the same position.
        TypeError: an argument that is not numeric.
    """
    ranges.check(name, spec)
    stars = to_states(name, "", x, v)
    m = check_numbers(f"{name}: m", m, shape=(stars.shape[1],), above=0)
    points = (
        jnp.zeros((6, 0))
        if tracers is None
        else to_states(name, "tracers.", *_unpack_tracers(name, tracers))
    )
    if points.shape[1]:
        stars, points, m = one_precision(name, x=stars, tracers=points, m=m)
    else:
        stars, m = one_precision(name, x=stars, m=m)
        points = jnp.zeros((6, 0), stars.dtype)
    refuse_shared = lambda *places: _refuse_shared_places(name, *map(np.asarray, places))
    defer_check(refuse_shared, stars, points)
    return stars, m, points


def to_states(name: str, prefix: str, x: Any, v: Any) -> Array:
    """Return positions over velocities [6, N] of bodies at x [N, 3] with velocities v [N, 3]."""
    x = check_numbers(f"{name}: {prefix}x", x, shape=("N", 3))
    v = check_numbers(f"{name}: {prefix}v", v, shape=(x.shape[0], 3))
    x, v = one_precision(name, **{f"{prefix}x": x, f"{prefix}v": v})
    return jnp.concatenate([x.T, v.T])


def _to_float64_states(name: str, prefix: str, x: Any, v: Any) -> np.ndarray:
    """Return `to_states` in float64, for x and v of any type."""
    x = _to_float64(f"{name}: {prefix}x", x, ("N", 3))
    v = _to_float64(f"{name}: {prefix}v", v, x.shape)
    return np.concatenate([x.T, v.T])


def _to_float64(name: str, value: Any, shape: tuple) -> np.ndarray:
    """Return the argument in float64."""
    return np.asarray(check_magnitude(name, ranges.numbers(name, value, shape)), np.float64)


def _unpack_tracers(name: str, tracers: Any) -> tuple[Any, Any]:
    if not isinstance(tracers, tuple | list) or len(tracers) != 2:
        raise TypeError(
            f"{name}: tracers={type(tracers).__name__}; it must be positions and velocities, "
            "(x [M, 3], v [M, 3]); give both"
        )
    return tuple(tracers)


def num_intervals(name: str, interval: float, t: Any) -> int:
    """Return the number of intervals in a time `t`."""
    ranges.refuse(f"{name}: t", t, ranges.Range(least=0, one=True))
    if abs(round(t / interval) * interval - t) > 1e-12 * t:
        raise ValueError(f"{name}: t={t:g}; it must be a multiple of the interval, {interval:g}")
    return round(t / interval)


def check_energy(
    history: dict[str, np.ndarray], tolerance: float, unit: float, interval: float
) -> None:
    """Raise if the energy error of the stars exceeds its tolerance.

    Args:
        history: "kinetic" and "potential" [1 + T], from the start.
        tolerance: maximum error, in `unit`.
        unit: energy of the cluster, M^2 / 4 R_v, without that inside bound pairs, which may be a
            thousand times larger and would hide any error.
        interval: time between two rows.

    Raises:
        RuntimeError: the error was larger.
    """
    total = history["kinetic"] + history["potential"]
    error = abs(total - total[0]) / unit
    if (error > tolerance).any():
        first = int(np.argmax(error > tolerance))
        raise RuntimeError(
            f"evolve: the energy is off by {error[first]:.2g} of M^2 / 4 R_v at t = "
            f"{first * interval:g}, more than tolerance={tolerance:g}; make eta smaller, give a "
            "softening, or a larger tolerance"
        )


def _refuse_shared_places(name: str, stars: np.ndarray, tracers: np.ndarray) -> None:
    places, first, count = np.unique(stars[:3], axis=1, return_index=True, return_counts=True)
    if places.shape[1] < stars.shape[1]:
        where = int(first[np.argmax(count)])
        raise ValueError(f"{name}: x: star {where} coincides with another; move one, or merge them")
    together = np.hstack([places, np.unique(tracers[:3], axis=1)])
    together, count = np.unique(together, axis=1, return_counts=True)
    if (count > 1).any():
        x = together[:, np.argmax(count)]
        where = int(np.flatnonzero((tracers[:3] == x[:, None]).all(0))[0])
        raise ValueError(
            f"{name}: tracers: body {where} coincides with a star; move it, or leave it out"
        )
