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

from jaxgpu import ranges
from jaxgpu.precision import in_float64, reassociated
from jaxgpu.run import Run, run

from ..forces.tide import Alone, Origin
from ..measure import diagnostics
from . import cluster, entry, hermite6


@in_float64
def evolve(
    spec: hermite6.Hermite6,
    stars: Any,
    t: float,
    *,
    tracers: Any = None,
    origin: Origin | None = None,
    tolerance: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
) -> Run:
    """Evolve stars [6, N], and massless bodies [6, M], for a time t as `spec` says; G = 1.

    In float64, whatever the global precision. The run can be killed at any moment and resumed to
    the same bits.

    Args:
        spec: masses [N], accuracy, softening, the field of a galaxy, and the interval, after each
            of which energies are recorded and the run may be resumed.
        stars: positions over velocities; relative to the origin, where there is a galaxy. Of six
            stars, [6, 6], in `layout.Columns`, or in `layout.Rows` where they are rows.
        t: a multiple of the interval.
        tracers: positions over velocities of bodies without mass; none by default.
        origin: where the cluster is in the galaxy, and how it moves.
        tolerance: how far the energy may go from that of the start, as a part of the cluster's own,
            M^2 / 4 R_v, in which the orbits of bound pairs do not count; inf for any. 1e-3 by
            default where the cluster is alone; a galaxy works on it, and none can be given there.
        out: folder for checkpoints.
        resume: go on from the last one there.

    Returns:
        As `state` the last `hermite6.State`, as `history` the "kinetic" and "potential" energy of
        the stars at the start and after each interval, without the galaxy's.

    Raises:
        ValueError: bodies at the same place, masses that are not positive, anything not finite, a
        galaxy without a place in it.
        RuntimeError: an encounter wanted steps below the floor, or the energy left its tolerance.

    >>> pair = np.array([[0.5, -0.5], [0, 0], [0, 0], [0, 0], [0.5, -0.5], [0, 0]])
    >>> history = evolve(hermite6.Hermite6(np.array([0.5, 0.5])), pair, 1.0).history
    >>> round(float((history["kinetic"] + history["potential"])[-1]), 9)
    -0.125
    """
    ranges.check("evolve", spec)
    stars, m, tracers = entry.bodies("evolve", stars, spec.m, tracers)
    interval = float(spec.interval)
    steps = entry.intervals("evolve", interval, t)
    spec = jax.tree.map(lambda q: jnp.asarray(q, jnp.float64), spec)
    alone = isinstance(spec.tide, Alone)
    if alone != (origin is None):
        given = "no origin" if origin is None else "no spec.tide"
        raise ValueError(f"origin: a galaxy has a field and a place in it; {given}; give both")
    if tolerance is not None and not alone:
        raise ValueError(
            f"evolve: tolerance={tolerance}; a galaxy works on the cluster, whose energy is not "
            "kept; leave it out"
        )
    among = ranges.Range(above=0, infinite=True, none=True, one=True)
    ranges.refuse("evolve: tolerance", tolerance, among)
    limit = (entry.TOLERANCE if alone else np.inf) if tolerance is None else tolerance
    radius = cluster.weighed(jnp.asarray(stars), jnp.asarray(m))[1]
    unit = float(m.sum() ** 2 / (4 * radius))
    origin = jax.tree.map(lambda q: jnp.asarray(q, jnp.float64), origin)
    state = jax.jit(hermite6.init)(spec, jnp.asarray(stars), jnp.asarray(tracers), origin)

    def measure(state: hermite6.State) -> dict[str, Array]:
        kinetic, potential = diagnostics.energy(state.stars.x, spec.m, spec.softening)
        return {"kinetic": kinetic, "potential": potential}

    @reassociated
    def step(state: hermite6.State) -> hermite6.State:
        return hermite6.step(spec, state)

    def check(state: hermite6.State, history: dict[str, np.ndarray]) -> None:
        if low := int(state.floored):
            raise RuntimeError(
                f"evolve: {low} steps should have been shorter than interval / 2^{spec.shortest}, "
                "for bodies that came close; give a softening, or use cluster.evolve, which pairs "
                "them"
            )
        entry.check_energy(history, limit, unit, interval)

    return run(step, state, steps, measure=measure, check=check, out=out, resume=resume)
