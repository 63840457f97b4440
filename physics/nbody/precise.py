"""Evolve a star cluster to sixth order, alone or in a galaxy: the one-call form of `hermite6`.

As `cluster.evolve`, for energy errors below 1e-9 and for clusters in a tide. Close pairs are not
regularised: a hard binary costs its own steps, and an encounter without softening its own.
"""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.nbody import cluster, diagnostics, hermite6
from jaxgpu.physics.nbody.tide import Alone, Origin
from jaxgpu.precision import in_float64, reassociated
from jaxgpu.run import Run, run


@in_float64
def evolve(
    spec: hermite6.Hermite6,
    stars: Any,
    t: float,
    *,
    tracers: Any = None,
    origin: Origin | None = None,
    out: str | Path | None = None,
    resume: bool = False,
) -> Run:
    """Evolve stars [6, N], and massless bodies [6, M], for a time t as `spec` says; G = 1.

    In float64, whatever the global precision. The run can be killed at any moment and resumed to
    the same bits.

    Args:
        spec: masses [N], accuracy, softening, the field of a galaxy, and the interval, after each
            of which energies are recorded and the run may be resumed.
        stars: positions over velocities; relative to the origin, where there is a galaxy.
        t: a multiple of the interval.
        tracers: positions over velocities of bodies without mass; none by default.
        origin: where the cluster is in the galaxy, and how it moves.
        out: folder for checkpoints.
        resume: go on from the last one there.

    Returns:
        As `state` the last `hermite6.State`, as `history` the "kinetic" and "potential" energy of
        the stars after each interval, without the galaxy's.

    Raises:
        ValueError: bodies at the same place, masses that are not positive, anything not finite, a
        galaxy without a place in it.
        RuntimeError: an encounter wanted steps below the floor.

    >>> pair = np.array([[0.5, -0.5], [0, 0], [0, 0], [0, 0], [0.5, -0.5], [0, 0]])
    >>> history = evolve(hermite6.Hermite6(np.array([0.5, 0.5])), pair, 1.0).history
    >>> round(float((history["kinetic"] + history["potential"])[-1]), 9)
    -0.125
    """
    spec = jax.tree.map(lambda q: jnp.asarray(q, jnp.float64), spec)
    stars = np.asarray(stars, np.float64)
    tracers = np.zeros((6, 0)) if tracers is None else np.asarray(tracers, np.float64)
    cluster._check(stars, np.asarray(spec.m), tracers, 0.0)
    cluster._check_rule(float(spec.eta), float(spec.softening))
    count = _intervals(float(spec.interval), t)
    if isinstance(spec.tide, Alone) != (origin is None):
        given = "no origin" if origin is None else "no spec.tide"
        raise ValueError(f"origin: a galaxy has a field and a place in it; {given}; give both")
    origin = jax.tree.map(lambda q: jnp.asarray(q, jnp.float64), origin)
    state = jax.jit(hermite6.init)(spec, jnp.asarray(stars), jnp.asarray(tracers), origin)

    def measure(state: hermite6.State) -> dict[str, Array]:
        kinetic, potential = diagnostics.energy(state.stars.x, spec.m, spec.softening)
        return {"kinetic": kinetic, "potential": potential}

    @reassociated
    def step(state: hermite6.State) -> hermite6.State:
        return hermite6.step(spec, state)

    done = run(step, state, count, measure=measure, out=out, resume=resume)
    if low := int(done.state.floored):
        raise RuntimeError(
            f"evolve: {low} steps should have been shorter than interval / 2^{spec.shortest}, for "
            "bodies that came close; give a softening, or use cluster.evolve, which pairs them"
        )
    return done


def _intervals(interval: float, t: float) -> int:
    """How many make up the time."""
    if not 0 < interval < np.inf:
        raise ValueError(f"spec.interval: {interval}; must be positive; 0.125 is usual")
    if not 0 <= t < np.inf or abs(round(t / interval) * interval - t) > 1e-12 * t:
        raise ValueError(f"t: {t}; must be a multiple of the interval, {interval}, not negative")
    return round(t / interval)
