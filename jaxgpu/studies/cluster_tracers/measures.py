"""Measurements of a cluster at one time, and their statistics over seeds."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.nbody.clusters import Cluster, cluster
from jaxgpu.physics.nbody.measure import diagnostics

FRACTIONS = (0.1, 0.5, 0.9)
HEAVY = 20  # one star in `HEAVY` counts as heavy


def measure_cluster(spec: Cluster, now: cluster.State) -> dict[str, Array]:
    """Return Lagrangian radii [F] by body type, core radius, energy, escapers and pairs."""
    x, m = now.x, now.m
    centre, core = diagnostics.core(x, m)
    fractions = jnp.asarray(FRACTIONS)
    order = jnp.sort(m)
    count = m.shape[0]
    heavy, light = m >= order[count - max(count // HEAVY, 3)], m < order[count // 2]
    radii = lambda x, kept: diagnostics.lagrangian_radii(x, kept.astype(m.dtype), centre, fractions)
    kinetic, potential = diagnostics.energy(x, now.v, m)
    return {
        "heavy": radii(x, heavy & ~now.stars_gone.gone),
        "light": radii(x, light & ~now.stars_gone.gone),
        "tracers": radii(now.tracer_x, ~now.gone.gone),
        "core": core,
        "energy": kinetic + potential,
        "gone": jnp.sum(now.gone.gone, dtype=jnp.int32),
        "pairs": now.bodies.num_pairs,
    }


def running_median(series: np.ndarray, width: int = 5) -> np.ndarray:
    """Return the running median [T, ...] along time."""
    pad = np.pad(series, [(width // 2, width // 2)] + [(0, 0)] * (series.ndim - 1), mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(pad, width, 0), -1)


def find_collapse(core: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the minimum core radius of each cluster [R], and a mask of collapses.

    A collapse has a minimum: the smoothed core radius shrinks below a quarter of its initial value
    and later grows to more than 1.5 times the minimum. A minimum at the end of a run, or of a core
    that only fluctuates, is not a collapse.

    Args:
        core: core radii [T, R].
    """
    course = running_median(core)
    turn = np.argmin(course, 0)
    least = course.min(0)
    after = np.array([course[at:, run].max() for run, at in enumerate(turn)])
    return turn, (least < 0.25 * course[0]) & (after > 1.5 * least)


def slope(radii: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return d ln r / dt [R] by least squares over the second half, from radii [T, R]."""
    half = len(times) // 2
    t = times[half:] - times[half:].mean()
    return t @ np.log(radii[half:]) / (t @ t)


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard error; the error is NaN for fewer than two values."""
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return float(values.mean()) if len(values) else np.nan, np.nan
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def escape_rates(gone: np.ndarray, times: np.ndarray, turn: np.ndarray, count: int) -> np.ndarray:
    """Return escapes per time unit and thousand bodies [2, R], before and after the index `turn`.

    The rate after the last time is NaN.
    """
    runs = np.arange(gone.shape[1])
    at, end = gone[turn, runs], gone[-1]
    positive_or_nan = lambda span: np.where(span > 0, span, np.nan)
    before, after = positive_or_nan(times[turn]), positive_or_nan(times[-1] - times[turn])
    return 1000 / count * np.stack([at / before, (end - at) / after])
