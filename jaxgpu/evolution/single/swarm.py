"""Particle swarms: PSO with constriction, and the competitive swarm CSO.

Clerc & Kennedy (2002), doi:10.1109/4235.985692, with the ring of neighbours of Bratton & Kennedy
(2007), doi:10.1109/SIS.2007.368035; Cheng & Jin (2015), doi:10.1109/TCYB.2014.2322602. O(N D).

CSO lets random pairs compete and moves the loser of each, so `ask` gives N / 2 candidates; the
first two generations evaluate the two halves of the swarm. Departure: a particle that leaves the
box stays on its side, and its velocity is the step that it could take.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size

from ..population import inside, permutation, sample
from ..problem import Box, Problem
from ..protocol import ask, init, tell
from .ranking import Best, better, nothing, start


@pytree
class PSO:
    """What to run."""

    population: int = size(default=30, least=4)  # N
    inertia: Array | float = number(default=0.72984, one=True)  # [] constriction chi
    # [] chi phi / 2, to the own best and the neighbours'
    attraction: Array | float = number(default=1.496172, least=0, one=True)

    def __post_init__(self) -> None:
        if isinstance(self.population, int) and self.population < 4:
            raise ValueError(f"PSO: population={self.population}; it must be at least 4")


@pytree
class PSOState:
    """Where the run is."""

    x: Array  # [N, D] particles
    v: Array  # [N, D] velocities
    own: Array  # [N, D] best place of each
    f: Array  # [N] its objective
    violation: Array  # [N] and violation
    best: Best
    box: Box
    generation: Array  # []


@init.register
def _(spec: PSO, key: Array, problem: Problem) -> PSOState:
    start(spec, key, problem)
    members = sample(key, problem, spec.population)
    x, far = members.x, members.violation
    best, box = nothing(problem), problem.box
    return PSOState(x, jnp.zeros_like(x), x, far, far, best, box, jnp.int32(0))


def _beats(f: Array, violation: Array, than: Array, broken: Array) -> Array:
    return (violation < broken) | ((violation == broken) & (f < than))


@ask.register
def _(spec: PSO, state: PSOState, key: Array) -> Array:
    u, w = jax.random.uniform(key, (2, *state.x.shape), state.x.dtype)
    # the best of a particle and its two neighbours on the ring
    place, f, broken = state.own, state.f, state.violation
    for shift in (1, -1):
        other = tuple(jnp.roll(a, shift, 0) for a in (state.own, state.f, state.violation))
        win = _beats(other[1], other[2], f, broken)
        place = jnp.where(win[:, None], other[0], place)
        f, broken = jnp.where(win, other[1], f), jnp.where(win, other[2], broken)
    pull = u * (state.own - state.x) + w * (place - state.x)
    x = inside(state.box, state.x + spec.inertia * state.v + spec.attraction * pull)
    return jnp.where(state.generation == 0, state.x, x)


@tell.register
def _(spec: PSO, state: PSOState, x: Array, f: Array, violation: Array) -> PSOState:
    win = _beats(f[:, 0], violation, state.f, state.violation)
    return PSOState(
        x,
        x - state.x,
        jnp.where(win[:, None], x, state.own),
        jnp.where(win, f[:, 0], state.f),
        jnp.where(win, violation, state.violation),
        better(state.best, x, f, violation),
        state.box,
        state.generation + 1,
    )


@pytree
class CSO:
    """What to run."""

    population: int = size(default=100, least=4)  # N, even
    # [] phi, pull to the mean; the paper's 0 up to 100 particles
    social: Array | float = number(default=0.0, least=0, one=True)

    def __post_init__(self) -> None:
        whole = isinstance(self.population, int)
        if whole and (self.population < 4 or self.population % 2):
            raise ValueError(f"CSO: population={self.population}; it must be even, at least 4")


@pytree
class CSOState:
    """Where the run is."""

    x: Array  # [N, D] particles
    v: Array  # [N, D] velocities
    f: Array  # [N] objective of each
    violation: Array  # [N]
    loser: Array  # [N / 2] who moves next
    winner: Array  # [N / 2] whom each learns from
    best: Best
    box: Box
    key: Array  # [] of the pairs
    generation: Array  # []


@init.register
def _(spec: CSO, key: Array, problem: Problem) -> CSOState:
    k_sample, k_pairs = jax.random.split(key)
    start(spec, key, problem)
    members = sample(k_sample, problem, spec.population)
    x, far = members.x, members.violation
    first, second = jnp.arange(spec.population, dtype=jnp.int32).reshape(2, -1)
    best, box = nothing(problem), problem.box
    return CSOState(x, jnp.zeros_like(x), far, far, first, second, best, box, k_pairs, jnp.int32(0))


@ask.register
def _(spec: CSO, state: CSOState, key: Array) -> Array:
    u = jax.random.uniform(key, (3, spec.population // 2, state.x.shape[1]), state.x.dtype)
    x, towards = state.x[state.loser], state.x[state.winner]
    centre = jnp.mean(state.x, axis=0, keepdims=True)
    v = u[0] * state.v[state.loser] + u[1] * (towards - x) + spec.social * u[2] * (centre - x)
    return jnp.where(state.generation < 2, x, inside(state.box, x + v))


@tell.register
def _(spec: CSO, state: CSOState, x: Array, f: Array, violation: Array) -> CSOState:
    moved = state.loser
    v = state.v.at[moved].set(x - state.x[moved], unique_indices=True)
    value = state.f.at[moved].set(f[:, 0], unique_indices=True)
    broken = state.violation.at[moved].set(violation, unique_indices=True)
    key = jax.random.fold_in(state.key, state.generation)
    a, b = permutation(key, spec.population).reshape(2, -1)
    win = _beats(value[a], broken[a], value[b], broken[b])
    first, second = jnp.arange(spec.population, dtype=jnp.int32).reshape(2, -1)
    again = state.generation == 0  # the second half is still to be evaluated
    return CSOState(
        state.x.at[moved].set(x, unique_indices=True),
        v,
        value,
        broken,
        jnp.where(again, second, jnp.where(win, b, a)),
        jnp.where(again, first, jnp.where(win, a, b)),
        better(state.best, x, f, violation),
        state.box,
        state.key,
        state.generation + 1,
    )
