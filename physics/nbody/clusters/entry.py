"""What the one-call forms of clusters hold their arguments to, and their energy on the way."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import ranges

from .. import layout
from ..bodies import one_precision
from ..forces.tide import Origin

TOLERANCE = 1e-3  # of the energy, over a run; where an integration has lost what it was about


def bodies(name: str, stars: Any, m: Any, tracers: Any) -> tuple[np.ndarray, ...]:
    """Stars [6, N], their masses [N] and massless bodies [6, M] as float64, each at its own place.

    Args:
        name: of the function that is called.
        stars: positions over velocities; six of them in `layout.Columns` or `layout.Rows`.
        m: masses.
        tracers: as the stars, or None.

    Raises:
        ValueError: another shape, anything not finite, masses that are not positive, fewer than two
            stars, bodies at the same place.
        TypeError: no numbers.
    """
    stars = _columns(f"{name}: stars", stars)
    none = np.zeros((6, 0))
    tracers = none if tracers is None else _columns(f"{name}: tracers", tracers)
    if stars.shape[1] < 2:
        raise ValueError(f"{name}: stars: {stars.shape[1]} of them; must be [6, N], N at least 2")
    m = np.asarray(ranges.numbers(f"{name}: m", m, (stars.shape[1],)), np.float64)
    if (m <= 0).any():
        where = int(np.argmin(m))
        raise ValueError(
            f"{name}: m: star {where} has {m[where]}; must be positive; or make it a tracer"
        )
    _check_places(name, stars, tracers)
    return stars, m, tracers


def start(
    name: str, spec: Any, stars: Any, tracers: Any, origin: Origin | None
) -> tuple[Array, Array]:
    """Stars [6, N] and massless bodies [6, M] as a state is made of them; what is traced passes.

    Args:
        name: of the function that is called.
        spec: with the masses `m` [N].
        stars: positions over velocities.
        tracers: as the stars; [6, 0] for none.
        origin: in a galaxy.

    Raises:
        ValueError: another shape, anything not finite, a number outside its range, two floating
            types, bodies at the same place.
        TypeError: no numbers.
    """
    m = ranges.numbers(f"{name}: m", spec.m, ("N",), above=0)
    ranges.check(name, spec)
    ranges.check(name, origin)
    stars = layout.columns(f"{name}: stars", stars, 6)
    tracers = layout.columns(f"{name}: tracers", tracers, 6)
    if stars.shape != (6, *m.shape):
        shape = list(stars.shape)
        raise ValueError(f"{name}: stars {shape}; must be [6, {m.shape[0]}], as m is")
    if tracers.ndim != 2:
        raise ValueError(f"{name}: tracers {list(tracers.shape)}; must be [6, M]; M may be 0")
    if tracers.shape[1]:
        stars, tracers, _ = one_precision(name, stars=stars, tracers=tracers, m=m)
    else:
        stars, _ = one_precision(name, stars=stars, m=m)
        tracers = jnp.zeros((6, 0), stars.dtype)
    if not any(isinstance(x, jax.core.Tracer) for x in (stars, tracers)):
        _check_places(name, np.asarray(stars), np.asarray(tracers))
    return stars, tracers


def intervals(name: str, interval: float, t: Any) -> int:
    """How many intervals a time `t` is."""
    ranges.refuse(f"{name}: t", t, ranges.Range(least=0, one=True))
    if abs(round(t / interval) * interval - t) > 1e-12 * t:
        raise ValueError(f"{name}: t={t:g}; it must be a multiple of the interval, {interval:g}")
    return round(t / interval)


def check_energy(
    history: dict[str, np.ndarray], tolerance: float, unit: float, interval: float
) -> None:
    """Raise where the energy of stars left that of the start.

    Args:
        history: "kinetic" and "potential" [1 + T], from the start.
        tolerance: how far it may go, in `unit`.
        unit: the energy of the cluster, M^2 / 4 R_v, without what is within bound pairs: theirs may
            be a thousand times that, and would hide any error.
        interval: time between two rows.

    Raises:
        RuntimeError: it went farther.
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


def _columns(name: str, given: Any) -> np.ndarray:
    return np.asarray(layout.columns(name, given, 6), np.float64).reshape(6, -1)


def _check_places(name: str, stars: np.ndarray, tracers: np.ndarray) -> None:
    places, first, count = np.unique(stars[:3], axis=1, return_index=True, return_counts=True)
    if places.shape[1] < stars.shape[1]:
        where = int(first[np.argmax(count)])
        raise ValueError(
            f"{name}: stars: star {where} is where another is; move one, or merge them"
        )
    both = np.hstack([places, np.unique(tracers[:3], axis=1)])
    both, count = np.unique(both, axis=1, return_counts=True)
    if (count > 1).any():
        x = both[:, np.argmax(count)]
        where = int(np.flatnonzero((tracers[:3] == x[:, None]).all(0))[0])
        raise ValueError(
            f"{name}: tracers: body {where} is where a star is; move it, or leave it out"
        )
