"""Evolve a star cluster and its massless bodies: the one-call form of `hermite`."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.nbody import blocks, diagnostics, hermite
from jaxgpu.precision import in_float64, reassociated
from jaxgpu.run import Run, run

_SLOTS = 64  # pairs at a time; a cluster has as many hard ones only if it was born with them


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
) -> Run:
    """Evolve stars [6, N] of masses m [N], and massless bodies [6, M], for a time t; G = 1.

    In float64, in intervals of 1/8, whatever the global precision. The run can be killed at any
    moment and resumed to the same bits. Without softening, pairs of stars with a semi-major axis
    below the virial radius over N are regularised (`binaries`), up to 64 at a time.

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
        state: the last `hermite.State`, where a pair is a centre of mass and an orbit:
        `hermite.points` has all stars; history: "kinetic" and "potential" energy of the stars, and
        "pairs", how many, after each interval; timing.

    Raises:
        ValueError: bodies at the same place, masses that are not positive, anything not finite.
        RuntimeError: an encounter wanted steps below the floor, 2^-40 of an interval; or there were
        more close pairs than slots.

    >>> pair = np.array([[0.5, -0.5], [0, 0], [0, 0], [0, 0], [0.5, -0.5], [0, 0]])
    >>> history = evolve(pair, np.array([0.5, 0.5]), 1.0).history
    >>> round(float((history["kinetic"] + history["potential"])[-1]), 9)
    -0.125
    """
    stars, m = np.asarray(stars, np.float64), np.asarray(m, np.float64)
    tracers = np.zeros((6, 0)) if tracers is None else np.asarray(tracers, np.float64)
    _check(stars, m, tracers, t)
    _check_rule(eta, softening)
    spec = blocks.Hermite(jnp.asarray(m), eta, softening, pairing=_pairing(stars, m, softening))
    state = jax.jit(hermite.init)(spec, jnp.asarray(stars), jnp.asarray(tracers))

    def measure(state: hermite.State) -> dict[str, Array]:
        x = hermite.points(spec, state)
        kinetic, potential = diagnostics.energy(x, spec.m, softening)
        pairs = jnp.sum(state.slots.first < m.shape[0], dtype=jnp.int32)
        return {"kinetic": kinetic, "potential": potential, "pairs": pairs}

    @reassociated
    def step(state: hermite.State) -> hermite.State:
        return hermite.step(spec, state)

    done = run(step, state, round(t * 8), measure=measure, out=out, resume=resume)
    _complain(spec, done.state)
    return done


def _pairing(stars: np.ndarray, m: np.ndarray, softening: float) -> blocks.Pairing:
    """Slots for pairs of down to 3 kT, if every body is a point."""
    if softening:
        return blocks.Pairing()
    potential = jax.jit(diagnostics.energy)(jnp.asarray(stars), jnp.asarray(m))[1]
    radius = m.sum() ** 2 / (2 * abs(float(potential)))
    return blocks.Pairing(close=radius / m.size, slots=min(m.size // 2, _SLOTS))


def _complain(spec: blocks.Hermite, state: hermite.State) -> None:
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
