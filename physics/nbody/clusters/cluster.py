"""Evolve a star cluster and its massless bodies: the one-call form of `hermite`.

`begin` makes the state of a cluster, alone or in a galaxy, and `step` carries it on by an interval;
`evolve` is both, for a cluster that is alone. Bodies that leave are noted, and massless
ones are then left alone: they keep the state they were seen with and cost nothing.
"""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import ranges
from jaxgpu.precision import in_float64, reassociated
from jaxgpu.pytree import pytree
from jaxgpu.run import Timing, run

from ..forces.tide import Origin
from ..measure import diagnostics
from . import blocks, centres, entry, escape, hermite
from .once import once

_SLOTS, _SPARE = 64, 32  # pairs at a time at least, and beyond those of the start
_INTERVAL = 1 / 8  # between two rows of the history, where a run may be resumed
_FAR = 20.0  # virial radii; what is unbound there does not come back


@pytree
class Cluster:
    """A cluster on its way."""

    bodies: hermite.State
    stars: Array  # [6, N] positions over velocities of all stars, those in pairs too
    stars_gone: escape.Escapes  # of the stars [N]
    gone: escape.Escapes  # of the massless bodies [M]
    time: Array  # [] since the beginning


@dataclass(frozen=True)
class Evolution:
    """What `evolve` returns."""

    spec: blocks.Hermite
    cluster: Cluster
    history: dict[str, np.ndarray]  # [1 + T] at the start and after each interval, see `evolve`
    timing: Timing

    @property
    def state(self) -> hermite.State:
        """The last state, where a pair is a centre of mass and an orbit."""
        return self.cluster.bodies

    @property
    def stars(self) -> np.ndarray:
        """Positions over velocities [6, N] of all stars, those in pairs too."""
        return np.asarray(self.cluster.stars)

    @property
    def swarm(self) -> np.ndarray:
        """Positions over velocities [6, M] of the massless bodies; of the escaped, when they did.

        When that was, how fast and with what energy stands in `cluster.gone`.
        """
        return np.asarray(self.state.tracers.x)


@in_float64
def evolve(
    stars: Any,
    m: Any,
    t: float,
    *,
    tracers: Any = None,
    eta: float = 0.02,
    softening: float = 0.0,
    slots: int | None = None,
    tolerance: float = entry.TOLERANCE,
    out: str | Path | None = None,
    resume: bool = False,
) -> Evolution:
    """Evolve stars [6, N] of masses m [N], and massless bodies [6, M], for a time t; G = 1.

    In float64, in intervals of 1/8, whatever the global precision. The run can be killed at any
    moment and resumed to the same bits. Without softening, pairs of stars with a semi-major axis
    below the virial radius over N (of heavy stars, longer in proportion to the pair's mass) are
    regularised (`binaries`), and massless bodies within the virial radius over N of a star follow
    their conic about it (`hosts`).

    A bound pair or multiple counts as one body, at its centre of mass, in N, in the virial radius
    and where it is judged who has escaped (`centres`).

    Args:
        stars: positions over velocities; of six stars, [6, 6], in `layout.Columns`, or in
            `layout.Rows` where they are rows.
        m: masses, positive.
        t: a multiple of 1/8.
        tracers: positions over velocities of bodies without mass; none by default.
        eta: accuracy of the steps; the energy error falls about as its square.
        softening: length; 0 follows every encounter.
        slots: how many pairs are regularised at a time at most; by default there is room for those
            of the start and 32 more, and for 64 at least.
        tolerance: how far the energy may go from that of the start, as a part of the cluster's own,
            M^2 / 4 R_v, in which the orbits of bound pairs do not count; inf for any. A run that
            goes farther ends there, as in NBODY6.
        out: folder for checkpoints.
        resume: go on from the last one there.

    Returns:
        the last stars and massless bodies, the escapes (unbound beyond 20 virial radii), and as
        `history`, for the start and after each interval, the "kinetic" and "potential" energy of
        the stars, how many "pairs" there are, and how many massless bodies are "gone".

    Raises:
        ValueError: bodies at the same place, masses that are not positive, anything not finite.
        RuntimeError: an encounter wanted steps below the floor, 2^-40 of an interval; there were
        more close pairs than slots; the energy left its tolerance; or the stars' places are not
        finite any more. It is raised where that happens, and not at the end.

    >>> m = np.array([0.7, 0.3])  # a binary whose apocentre is where it is
    >>> pair = np.outer([1.0, 0.2, 0.1, 0.3, 0.8, 0.1], [-m[1], m[0]])
    >>> done = evolve(pair, m, 1.0)
    >>> energy = done.history["kinetic"] + done.history["potential"]
    >>> energy.shape, abs(energy / energy[0] - 1).max() < 1e-13
    ((9,), np.True_)
    >>> np.abs(done.stars[:3] @ m).max() < 1e-12
    np.True_
    """
    stars, m, tracers = entry.bodies("evolve", stars, m, tracers)
    _check_rule(eta, softening, slots, tolerance)
    steps = entry.intervals("evolve", _INTERVAL, t)
    count, radius = weighed(jnp.asarray(stars), jnp.asarray(m))
    pairing = blocks.Pairing() if softening else _pairing(m.size, int(count), radius, slots)
    spec = blocks.Hermite(jnp.asarray(m), eta, softening, _INTERVAL, pairing)
    edge, unit = _FAR * radius, float(m.sum() ** 2 / (4 * radius))
    start = jax.jit(begin)(spec, jnp.asarray(stars), jnp.asarray(tracers))
    complain(spec, start.bodies)

    def measure(cluster: Cluster) -> dict[str, Array]:
        kinetic, potential = diagnostics.energy(cluster.stars, spec.m, softening)
        pairs = jnp.sum(cluster.bodies.slots.first < m.shape[0], dtype=jnp.int32)
        gone = jnp.sum(cluster.gone.gone, dtype=jnp.int32)
        return {"kinetic": kinetic, "potential": potential, "pairs": pairs, "gone": gone}

    @reassociated
    def advance(cluster: Cluster) -> Cluster:
        return step(spec, cluster, edge, unbound=True)

    def check(cluster: Cluster, history: dict[str, np.ndarray]) -> None:
        complain(spec, cluster.bodies)
        entry.check_energy(history, tolerance, unit, _INTERVAL)

    done = run(advance, start, steps, measure=measure, check=check, out=out, resume=resume)
    return Evolution(spec, done.state, done.history, done.timing)


def begin(
    spec: blocks.Hermite, stars: Array, tracers: Array, origin: Origin | None = None
) -> Cluster:
    """A cluster of stars [6, N] and massless bodies [6, M], from which nobody has escaped yet."""
    stars, tracers = entry.start("begin", spec, stars, tracers, origin)
    nobody = escape.nobody(stars.shape[1], stars), escape.nobody(tracers.shape[1], stars)
    bodies = hermite.init(spec, stars, tracers, origin)
    return Cluster(bodies, stars, *nobody, jnp.zeros((), stars.dtype))


def step(
    spec: blocks.Hermite, cluster: Cluster, edge: Array | float, *, unbound: Array | bool
) -> Cluster:
    """The cluster an interval later, and who left it.

    A bound pair or multiple is judged as one body, at its centre of mass; a massless body that is
    bound to a star, as that star.

    Args:
        spec: how to integrate.
        cluster: where it is.
        edge: radius about the centre of mass of the stars that are still there; beyond it bodies
            have escaped. Their energy is that in the field of a point of the stars' mass.
        unbound: whether only those of positive energy have: True for a cluster that is alone,
            False in the tide of a galaxy, which does not give back what is beyond the edge.
    """
    ranges.refuse("step: edge", edge, ranges.Range(above=0, infinite=True, one=True))
    if not isinstance(unbound, bool | np.bool_ | Array) or jnp.result_type(unbound).kind != "b":
        raise TypeError(f"step: unbound={unbound!r}; it must be a bool; True where it is alone")
    bodies = hermite.step(spec, cluster.bodies)
    time = cluster.time + spec.interval
    points = hermite.points(spec, bodies)
    there = jnp.where(cluster.stars_gone.gone, 0, spec.m)
    mass = jnp.sum(there)
    centre = jnp.sum(there[None] * points, 1) / mass

    def noted(escapes: escape.Escapes, points: Array) -> escape.Escapes:
        d = points[:3] - centre[:3, None]
        depth = -mass / jnp.maximum(blocks.size(d), jnp.finfo(d.dtype).tiny)
        return escape.noted(escapes, time, points, depth, centre, edge, unbound=unbound)

    # where the centre of a pair is beyond the edge one of its members is: else nobody need be known
    outside = blocks.size(points[:3] - centre[:3, None]) > edge
    some = jnp.any(outside & ~cluster.stars_gone.gone)
    join = partial(centres.joined, softening=spec.softening)
    wholes = once(some, join, centres.singles(points, spec.m)).of_stars()
    gone = noted(cluster.gone, _with_hosts(spec, bodies, wholes))
    bodies = replace(bodies, tracers=escape.halted(bodies.tracers, gone.gone))
    return Cluster(bodies, points, noted(cluster.stars_gone, wholes), gone, time)


def _with_hosts(spec: blocks.Hermite, bodies: hermite.State, stars: Array) -> Array:
    """Where massless bodies are [6, M], or the `stars` [6, N] that they are bound to."""
    swarm = bodies.tracers
    m = jnp.take(spec.m, swarm.host, mode="fill", fill_value=0)
    r, v = blocks.size(swarm.s[:3]), blocks.size(swarm.s[3:])
    bound = (swarm.host < spec.m.shape[0]) & (r * v * v < 2 * m)
    return jnp.where(bound, jnp.take(stars, swarm.host, axis=1, mode="clip"), swarm.x)


@jax.jit
def weighed(stars: Array, m: Array) -> tuple[Array, Array]:
    """How many bodies there are, a pair or a multiple one of them, and their virial radius."""
    bodies = centres.joined(centres.singles(stars, m))
    return bodies.count, centres.virial_radius(bodies)


def _pairing(stars: int, bodies: int, radius: Array, slots: int | None) -> blocks.Pairing:
    """Slots for pairs of down to 3 kT, of stars that are points."""
    room = max(_SLOTS, stars - bodies + _SPARE) if slots is None else slots
    return blocks.Pairing(close=radius / bodies, slots=min(stars // 2, room))


def complain(spec: blocks.Hermite, state: hermite.State) -> None:
    """Raise where places were lost, steps floored or pairs refused on the way to `state`.

    The state may be that of many clusters.
    """
    if not np.isfinite(np.asarray(state.stars.x)).all():
        raise RuntimeError(
            "evolve: the stars' places are not finite any more, a fault of the integrator; report "
            "it with the stars at the start, and give a softening meanwhile"
        )
    if low := int(np.sum(state.floored)):
        raise RuntimeError(
            f"evolve: {low} steps should have been shorter than the floor; bodies came too close "
            "for these steps; give a softening"
        )
    if missed := int(np.sum(state.refused)):
        raise RuntimeError(
            f"evolve: {missed} times a close pair found none of {spec.pairing.slots} slots free; "
            f"make slots larger, {max(2 * spec.pairing.slots, _SLOTS)}, or give a softening"
        )


def _check_rule(eta: float, softening: float, slots: int | None, tolerance: float) -> None:
    ranges.refuse("evolve: eta", eta, ranges.Range(above=0, one=True))
    ranges.refuse("evolve: softening", softening, ranges.Range(least=0, one=True))
    ranges.refuse("evolve: slots", slots, ranges.Range(least=0, whole=True, none=True, one=True))
    among = ranges.Range(above=0, infinite=True, one=True)
    ranges.refuse("evolve: tolerance", tolerance, among)
