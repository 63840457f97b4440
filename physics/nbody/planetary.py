"""A planetary system and a swarm of massless bodies in it, relativity included.

One step is one stretch of time: first the massive bodies cross it in equal Gauss-Radau steps
(order 15, compensated sums, so that rounding grows as slowly as it can), then the swarm crosses the
film they left behind. Everything is in one state, so a run can stop after any step and go on.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.physics.nbody import elements, pairs, radau, relativity, swarm
from jaxgpu.physics.nbody.elements import Elements
from jaxgpu.physics.nbody.film import Film
from jaxgpu.physics.nbody.swarm import Control, Swarm
from jaxgpu.pytree import pytree, static


@pytree
class Planetary:
    """What to integrate, in any units in which G is 1 once it is multiplied into the masses."""

    gm: Array  # [N] gravitational parameter, length^3 / time^2; the heaviest first
    stretch: Array  # [] time that one step covers
    light: Array | float = (
        relativity.LIGHT
    )  # [] speed of light, length / time; inf: Newton's gravity
    control: Control = Control()
    pieces: int = static(default=8)  # steps of the massive bodies in a stretch
    iterations: int = static(default=5)


@pytree
class State:
    """Where the system is."""

    x: Array  # [N, 3] position, length
    v: Array  # [N, 3] velocity, length / time
    low_x: Array  # [N, 3] what rounding has kept out of x so far
    low_v: Array  # [N, 3] what rounding has kept out of v so far
    a: Array  # [8, N, 3] acceleration at the nodes of the last step
    swarm: Swarm


def init(spec: Planetary, x: Array, v: Array, swarm_x: Array, swarm_v: Array) -> State:
    """The state at the start.

    Args:
        spec: the system.
        x: barycentric positions of the massive bodies [N, 3].
        v: their velocities [N, 3].
        swarm_x: positions of the massless bodies [3, M]; M may be 0.
        swarm_v: their velocities [3, M].
    """
    _check(spec, x, v, swarm_x, swarm_v)
    a = jnp.repeat(relativity.einstein_infeld_hoffmann(x, v, spec.gm, spec.light)[None], 8, axis=0)
    a, _ = _solve(spec, x, v, a, 20)  # from a constant, the fastest body gains a digit or two each
    film = Film(x[None], v[None], a[None], spec.stretch / spec.pieces)
    tracers = swarm.init(partial(_force, spec), film, swarm_x, swarm_v)
    # the nodes of the first step stand for those of a step before it: only a first guess
    return State(x, v, jnp.zeros_like(x), jnp.zeros_like(v), a, tracers)


def step(spec: Planetary, state: State) -> State:
    """The state one stretch of time later."""
    dt = spec.stretch / spec.pieces

    def piece(state, _):
        guess = radau.extrapolated(state.a, jnp.ones((1, 1), state.x.dtype))
        a, _ = _solve(spec, state.x, state.v, guess, spec.iterations)
        dx, dv = radau.increment(state.v, dt, a)
        x, low_x = _add(state.x, state.low_x, dx)
        v, low_v = _add(state.v, state.low_v, dv)
        seen = (state.x, state.v, a)
        return replace(state, x=x, v=v, low_x=low_x, low_v=low_v, a=a), seen

    state, seen = lax.scan(piece, state, None, length=spec.pieces)
    # the barrier keeps the compiler from rounding the massive bodies otherwise for the swarm's sake
    film = Film(*lax.optimization_barrier(seen), dt)
    tracers = swarm.advance(partial(_force, spec), spec.control, film, state.swarm)
    return replace(state, swarm=tracers)


def swarm_orbits(gm: Array, state: State) -> Elements:
    """Osculating elements [M] of the swarm about the first body, whose parameter is `gm`."""
    x, v = state.x[0][:, None], state.v[0][:, None]
    return elements.from_state(state.swarm.x - x, state.swarm.v - v, gm)


def _check(spec: Planetary, x: Array, v: Array, swarm_x: Array, swarm_v: Array) -> None:
    n = spec.gm.shape[0]
    if x.shape != (n, 3) or v.shape != (n, 3):
        shapes = f"x {list(x.shape)}, v {list(v.shape)}"
        raise ValueError(f"planetary.init: {shapes}; {n} bodies have gm, so both must be [{n}, 3]")
    if swarm_x.ndim != 2 or swarm_x.shape[0] != 3 or swarm_x.shape != swarm_v.shape:
        shapes = f"swarm_x {list(swarm_x.shape)}, swarm_v {list(swarm_v.shape)}"
        raise ValueError(f"planetary.init: {shapes}; both must be [3, M], components first")


def _solve(
    spec: Planetary, x: Array, v: Array, guess: Array, iterations: int
) -> tuple[Array, Array]:
    force = jax.vmap(partial(relativity.einstein_infeld_hoffmann, gm=spec.gm, light=spec.light))
    accelerate = lambda first, x, v: force(x, v)
    return radau.solve(accelerate, x, v, spec.stretch / spec.pieces, guess, iterations)


def _force(spec: Planetary, bodies_x: Array, bodies_v: Array, x: Array, v: Array) -> Array:
    """Newton's pull of all bodies and Schwarzschild's correction of the heaviest, [K, 3, B]."""
    a = pairs.pull_of_few(bodies_x, spec.gm, x)
    r, w = (
        [p[:, k] - q[:, 0, k, None] for k in range(3)] for p, q in ((x, bodies_x), (v, bodies_v))
    )
    return a + jnp.stack(relativity.schwarzschild(r, w, spec.gm[0], spec.light), 1)


def _add(high: Array, low: Array, term: Array) -> tuple[Array, Array]:
    """high + low + term as a rounded sum and what the rounding left (Kahan's compensated sum)."""
    term = term + low
    total = high + term
    return total, term - (total - high)
