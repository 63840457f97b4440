"""Particle swarms: PSO with constriction, and the competitive swarm optimizer CSO.

Clerc & Kennedy (2002), doi:10.1109/4235.985692, with the ring topology of Bratton & Kennedy (2007),
doi:10.1109/SIS.2007.368035; Cheng & Jin (2015), doi:10.1109/TCYB.2014.2322602. O(N D).

CSO lets random pairs compete and moves the loser of each, so `ask` returns N / 2 candidates; the
first two generations evaluate the two halves of the swarm. Difference: a particle that leaves the
box stays on its boundary, and its velocity is the step that it could take.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from ..population import clip, key_from, permutation, sample
from ..problem import Box, Problem
from ..protocol import Algorithm, PopulationAlgorithm, check_pop_size, check_tell
from .ranking import Best, check_single, init_best, update_best


@pytree
class PSO(PopulationAlgorithm["PSOState"]):
    """Particle swarm optimization with constriction and a ring topology.

    >>> from jaxgpu.evolution import Real, minimize
    >>> found = minimize(lambda x: (x - 1) ** 2, Real(-5, 5), 1200, algorithm=PSO(20))
    >>> print(found.x.round(2))
    1.0
    """

    pop_size: int = size(default=30, least=4)  # N
    inertia: Array | float = number(default=0.72984, one=True)  # [] constriction chi
    # [] chi phi / 2, towards the particle's own best and that of its neighbors
    attraction: Array | float = number(default=1.496172, least=0, one=True)

    def init(self, key: Array, problem: Problem) -> "PSOState":
        """Return the state with particles sampled uniformly in the box, at rest."""
        problem = check_single(self, key, problem)
        members = sample(key, problem, self.pop_size)
        x, far = members.x, members.violation
        return PSOState(
            x=x,
            v=jnp.zeros_like(x),
            own=x,
            f=far,
            violation=far,
            best=init_best(problem),
            box=problem.box,
            generation=jnp.int32(0),
        )

    def ask(self, state: "PSOState", key: Array) -> Array:
        """Return the next positions of the particles."""
        u, w = jax.random.uniform(key, (2, *state.x.shape), state.x.dtype)
        # the best among a particle and its two neighbors on the ring
        place, f, broken = state.own, state.f, state.violation
        for shift in (1, -1):
            own, own_f, own_broken = (
                jnp.roll(a, shift, 0) for a in (state.own, state.f, state.violation)
            )
            win = _is_better(own_f, own_broken, f, broken)
            place = jnp.where(win[:, None], own, place)
            f, broken = jnp.where(win, own_f, f), jnp.where(win, own_broken, broken)
        pull = u * (state.own - state.x) + w * (place - state.x)
        x = clip(state.box, state.x + self.inertia * state.v + self.attraction * pull)
        return jnp.where(state.generation == 0, state.x, x)

    def tell(
        self, state: "PSOState", x: Array, f: Array, violation: Array | None = None
    ) -> "PSOState":
        """Return the state with the new positions, and the best positions so far."""
        x, f, violation = check_tell(self, state, x, f, violation)
        win = _is_better(f[:, 0], violation, state.f, state.violation)
        return replace(
            state,
            x=x,
            v=x - state.x,
            own=jnp.where(win[:, None], x, state.own),
            f=jnp.where(win, f[:, 0], state.f),
            violation=jnp.where(win, violation, state.violation),
            best=update_best(state.best, x, f, violation),
            generation=state.generation + 1,
        )


@pytree
class PSOState:
    """State of a PSO run."""

    x: Array  # [N, D] particles
    v: Array  # [N, D] velocities
    own: Array  # [N, D] best position of each particle
    f: Array  # [N] its objective
    violation: Array  # [N] its violation
    best: Best
    box: Box
    generation: Array  # [] number of generations so far


@pytree
class CSO(Algorithm["CSOState"]):
    """Competitive swarm optimizer (Cheng & Jin 2015): the losers of random pairs move.

    >>> from jaxgpu.evolution import Real, minimize
    >>> found = minimize(lambda x: (x - 1) ** 2, Real(-5, 5), 1200, algorithm=CSO(20))
    >>> print(found.x.round(2))
    1.0
    """

    pop_size: int = size(default=100, least=4)  # N, even
    # [] phi, attraction to the mean; 0 in the paper for up to 100 particles
    social: Array | float = number(default=0.0, least=0, one=True)

    def __post_init__(self) -> None:
        check_pop_size("CSO", self.pop_size, even=True)

    @property
    def batch_size(self) -> int:
        return self.pop_size // 2

    def init(self, key: Array, problem: Problem) -> "CSOState":
        """Return the state with particles sampled uniformly in the box, at rest."""
        problem = check_single(self, key, problem)
        members = sample(key, problem, self.pop_size)
        x, far = members.x, members.violation
        first, second = _halves(self.pop_size)
        return CSOState(
            x=x,
            v=jnp.zeros_like(x),
            f=far,
            violation=far,
            loser=first,
            winner=second,
            best=init_best(problem),
            box=problem.box,
            generation=jnp.int32(0),
        )

    def ask(self, state: "CSOState", key: Array) -> Array:
        """Return the next positions of the losers."""
        u = jax.random.uniform(key, (3, self.pop_size // 2, state.x.shape[1]), state.x.dtype)
        x, towards = state.x[state.loser], state.x[state.winner]
        centre = jnp.mean(state.x, axis=0, keepdims=True)
        v = u[0] * state.v[state.loser] + u[1] * (towards - x) + self.social * u[2] * (centre - x)
        return jnp.where(state.generation < 2, x, clip(state.box, x + v))

    def tell(
        self, state: "CSOState", x: Array, f: Array, violation: Array | None = None
    ) -> "CSOState":
        """Return the state with the losers at their new positions, and the next pairs."""
        x, f, violation = check_tell(self, state, x, f, violation)
        moved = state.loser
        v = state.v.at[moved].set(x - state.x[moved], unique_indices=True)
        value = state.f.at[moved].set(f[:, 0], unique_indices=True)
        broken = state.violation.at[moved].set(violation, unique_indices=True)
        key = jax.random.fold_in(key_from(x), state.generation)
        a, b = permutation(key, self.pop_size).reshape(2, -1)
        win = _is_better(value[a], broken[a], value[b], broken[b])
        first, second = _halves(self.pop_size)
        again = state.generation == 0  # the second half is not evaluated yet
        return replace(
            state,
            x=state.x.at[moved].set(x, unique_indices=True),
            v=v,
            f=value,
            violation=broken,
            loser=jnp.where(again, second, jnp.where(win, b, a)),
            winner=jnp.where(again, first, jnp.where(win, a, b)),
            best=update_best(state.best, x, f, violation),
            generation=state.generation + 1,
        )


@pytree
class CSOState:
    """State of a CSO run."""

    x: Array  # [N, D] particles
    v: Array  # [N, D] velocities
    f: Array  # [N] objective of each
    violation: Array  # [N] violation of each
    loser: Array  # [N / 2] index of particles that move next
    winner: Array  # [N / 2] index of the particle that each loser learns from
    best: Best
    box: Box
    generation: Array  # [] number of generations so far


def _is_better(f: Array, violation: Array, than: Array, broken: Array) -> Array:
    return (violation < broken) | ((violation == broken) & (f < than))


def _halves(count: int) -> tuple[Array, Array]:
    first, second = jnp.arange(count, dtype=jnp.int32).reshape(2, -1)
    return first, second
