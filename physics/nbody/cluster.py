"""Evolve a star cluster and its massless bodies: the one-call form of `hermite`.

`begin` makes the state of a cluster, alone or in a galaxy, and `step` carries it on by an interval;
`evolve` is both, for a cluster that is alone. Bodies that leave are noted, and massless
ones are then left alone: they keep the state they were seen with and cost nothing.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.nbody import blocks, diagnostics, escape, hermite
from jaxgpu.physics.nbody.tide import Alone, Origin
from jaxgpu.precision import in_float64, reassociated
from jaxgpu.pytree import pytree
from jaxgpu.run import Timing, run

_SLOTS = 64  # pairs at a time; a cluster has as many hard ones only if it was born with them
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
    history: dict[str, np.ndarray]  # after each interval: kinetic, potential, pairs, gone
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
    out: str | Path | None = None,
    resume: bool = False,
) -> Evolution:
    """Evolve stars [6, N] of masses m [N], and massless bodies [6, M], for a time t; G = 1.

    In float64, in intervals of 1/8, whatever the global precision. The run can be killed at any
    moment and resumed to the same bits. Without softening, pairs of stars with a semi-major axis
    below the virial radius over N (of heavy stars, longer in proportion to the pair's mass) are
    regularised (`binaries`), up to 64 at a time, and massless bodies within the virial radius over
    N of a star follow their conic about it (`hosts`).

    Args:
        stars: positions over velocities.
        m: masses, positive.
        t: a multiple of 1/8.
        tracers: positions over velocities of bodies without mass; none by default.
        eta: accuracy of the steps; the energy error falls about as its square.
        softening: length; 0 follows every encounter.
        out: folder for checkpoints.
        resume: go on from the last one there.

    Returns:
        the last stars and massless bodies, the escapes (unbound beyond 20 virial radii), and
        after each interval the "kinetic" and "potential" energy of the stars, how many "pairs"
        there are, and how many massless bodies are "gone".

    Raises:
        ValueError: bodies at the same place, masses that are not positive, anything not finite.
        RuntimeError: an encounter wanted steps below the floor, 2^-40 of an interval; there were
        more close pairs than slots; or the stars' places are not finite any more.

    >>> pair = np.array([[0.5, -0.5], [0, 0], [0, 0], [0, 0], [0.5, -0.5], [0, 0]])
    >>> done = evolve(pair, np.array([0.5, 0.5]), 1.0)
    >>> round(float((done.history["kinetic"] + done.history["potential"])[-1]), 9)
    -0.125
    >>> np.abs(done.stars[:3].sum(1)).max() < 1e-12
    np.True_
    """
    stars, m = np.asarray(stars, np.float64), np.asarray(m, np.float64)
    tracers = np.zeros((6, 0)) if tracers is None else np.asarray(tracers, np.float64)
    _check(stars, m, tracers, t)
    _check_rule(eta, softening)
    spec = blocks.Hermite(jnp.asarray(m), eta, softening, pairing=_pairing(stars, m, softening))
    edge = _FAR * _virial_radius(stars, m)
    start = jax.jit(begin)(spec, jnp.asarray(stars), jnp.asarray(tracers))

    def measure(cluster: Cluster) -> dict[str, Array]:
        kinetic, potential = diagnostics.energy(cluster.stars, spec.m, softening)
        pairs = jnp.sum(cluster.bodies.slots.first < m.shape[0], dtype=jnp.int32)
        gone = jnp.sum(cluster.gone.gone, dtype=jnp.int32)
        return {"kinetic": kinetic, "potential": potential, "pairs": pairs, "gone": gone}

    @reassociated
    def advance(cluster: Cluster) -> Cluster:
        return step(spec, cluster, edge)

    done = run(advance, start, round(t * 8), measure=measure, out=out, resume=resume)
    complain(spec, done.state.bodies)
    return Evolution(spec, done.state, done.history, done.timing)


def begin(
    spec: blocks.Hermite, stars: Array, tracers: Array, origin: Origin | None = None
) -> Cluster:
    """A cluster of stars [6, N] and massless bodies [6, M], from which nobody has escaped yet."""
    nobody = escape.nobody(stars.shape[1], stars), escape.nobody(tracers.shape[1], stars)
    bodies = hermite.init(spec, stars, tracers, origin)
    return Cluster(bodies, stars, *nobody, jnp.zeros((), stars.dtype))


def step(spec: blocks.Hermite, cluster: Cluster, edge: Array | float) -> Cluster:
    """The cluster an interval later, and who left it.

    Args:
        spec: how to integrate.
        cluster: where it is.
        edge: radius about the centre of mass of the stars that are still there; beyond it, and
            unbound where there is no tide, bodies have escaped. Their energy is that in the field
            of a point of the stars' mass.
    """
    bodies = hermite.step(spec, cluster.bodies)
    time, alone = cluster.time + spec.interval, isinstance(spec.tide, Alone)
    points = hermite.points(spec, bodies)
    there = jnp.where(cluster.stars_gone.gone, 0, spec.m)
    mass = jnp.sum(there)
    centre = jnp.sum(there[None] * points, 1) / mass

    def noted(escapes: escape.Escapes, points: Array) -> escape.Escapes:
        d = points[:3] - centre[:3, None]
        depth = -mass / jnp.maximum(blocks.size(d), jnp.finfo(d.dtype).tiny)
        return escape.noted(escapes, time, points, depth, centre, edge, unbound=alone)

    gone = noted(cluster.gone, bodies.tracers.x)
    bodies = replace(bodies, tracers=escape.halted(bodies.tracers, gone.gone))
    return Cluster(bodies, points, noted(cluster.stars_gone, points), gone, time)


def _pairing(stars: np.ndarray, m: np.ndarray, softening: float) -> blocks.Pairing:
    """Slots for pairs of down to 3 kT, if every body is a point."""
    if softening:
        return blocks.Pairing()
    return blocks.Pairing(close=_virial_radius(stars, m) / m.size, slots=min(m.size // 2, _SLOTS))


def _virial_radius(stars: np.ndarray, m: np.ndarray) -> float:
    potential = jax.jit(diagnostics.energy)(jnp.asarray(stars), jnp.asarray(m))[1]
    return m.sum() ** 2 / (2 * abs(float(potential)))


def complain(spec: blocks.Hermite, state: hermite.State) -> None:
    """Raise where places were lost, steps floored or pairs refused on the way to `state`."""
    if not np.isfinite(np.asarray(state.stars.x)).all():
        raise RuntimeError(
            "evolve: the stars' places are not finite any more, a fault of the integrator; report "
            "it with the stars at the start, and give a softening meanwhile"
        )
    if low := int(state.floored):
        raise RuntimeError(
            f"evolve: {low} steps should have been shorter than the floor; bodies came too close "
            "for these steps; give a softening"
        )
    if missed := int(state.refused):
        raise RuntimeError(
            f"evolve: {missed} times a close pair found none of {spec.pairing.slots} slots free; "
            "give a softening, or use hermite.step with pairing.slots larger"
        )


def _check(stars: np.ndarray, m: np.ndarray, tracers: np.ndarray, t: float) -> None:
    if stars.ndim != 2 or stars.shape[0] != 6 or stars.shape[1] < 2:
        raise ValueError(f"stars: shape {stars.shape}; must be [6, N] with N of at least 2")
    if tracers.ndim != 2 or tracers.shape[0] != 6:
        raise ValueError(f"tracers: shape {tracers.shape}; must be [6, M]; leave out for none")
    if m.shape != stars.shape[1:]:
        raise ValueError(f"m: shape {m.shape}; must be one mass for each of {stars.shape[1]} stars")
    for name, value in (("stars", stars), ("tracers", tracers), ("m", m)):
        if not np.isfinite(value).all():
            where = int(np.argwhere(~np.isfinite(value))[0, -1])
            raise ValueError(f"{name}: body {where} is not finite; give finite numbers")
    if (m <= 0).any():
        where = int(np.argmin(m))
        raise ValueError(f"m: star {where} has {m[where]}; must be positive; or make it a tracer")
    _check_places(stars, tracers)
    if not (t >= 0 and t * 8 == round(t * 8)):
        raise ValueError(f"t: {t}; must be a multiple of 1/8, and not negative")


def _check_rule(eta: float, softening: float) -> None:
    if not (0 < eta < np.inf and 0 <= softening < np.inf):
        given = f"eta: {eta}, softening: {softening}"
        raise ValueError(f"{given}; must be positive, and not negative; try 0.02 and 0")


def _check_places(stars: np.ndarray, tracers: np.ndarray) -> None:
    places, first, count = np.unique(stars[:3], axis=1, return_index=True, return_counts=True)
    if places.shape[1] < stars.shape[1]:
        where = int(first[np.argmax(count)])
        raise ValueError(f"stars: star {where} is where another is; move one, or merge them")
    both = np.hstack([places, np.unique(tracers[:3], axis=1)])
    both, count = np.unique(both, axis=1, return_counts=True)
    if (count > 1).any():
        x = both[:, np.argmax(count)]
        where = int(np.flatnonzero((tracers[:3] == x[:, None]).all(0))[0])
        raise ValueError(f"tracers: body {where} is where a star is; move it, or leave it out")
