"""NSGA-II: survival of the least dominated, then of the least crowded.

Deb, Pratap, Agarwal & Meyarivan (2002), doi:10.1109/4235.996017, with constrained domination
(section VI). Time O(m N log N) a front for up to three objectives, memory O(N log N) words.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution import pareto
from jaxgpu.evolution.pareto.crowding import crowding
from jaxgpu.evolution.pareto.order import sortable
from jaxgpu.evolution.population import (
    Population,
    chosen,
    distinct,
    merge,
    permutation,
    sample,
    take,
)
from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.evolution.protocol import ask, init, tell
from jaxgpu.evolution.variation import Variation, children
from jaxgpu.pytree import pytree, static


@pytree
class NSGA2:
    """What to run. Numbers are leaves: `vmap` over them to tune a batch of runs at once."""

    variation: Variation = Variation()
    population: int = static(default=100)  # N, even

    def __post_init__(self) -> None:
        if self.population < 4 or self.population % 2:
            raise ValueError(f"NSGA2: population={self.population}; it must be even, at least 4")


@pytree
class State:
    """Where the run is."""

    population: Population
    rank: Array  # [N] front of each member
    crowding: Array  # [N] crowding distance within the front
    box: Box
    generation: Array  # []


@init.register
def _(spec: NSGA2, key: Array, problem: Problem) -> State:
    n, dtype = spec.population, problem.box.lower.dtype
    members = sample(key, problem, n)
    rank, distance = jnp.zeros(n, jnp.int32), jnp.zeros(n, dtype)
    return State(members, rank, distance, problem.box, jnp.int32(0))


@ask.register
def _(spec: NSGA2, state: State, key: Array) -> Array:
    """Children of the winners of binary tournaments; every member is in two of them."""
    k_first, k_second, k_vary = jax.random.split(key, 3)
    n = spec.population
    a, b = permutation(k_first, n), permutation(k_second, n)
    entrants = jnp.concatenate([a, b]).reshape(2, -1)
    better = state.rank[entrants], -state.crowding[entrants]
    win = (better[0][0] < better[0][1]) | (
        (better[0][0] == better[0][1]) & (better[1][0] <= better[1][1])
    )
    x = state.population.x[jnp.where(win, entrants[0], entrants[1])]
    x = children(k_vary, spec.variation, x[: n // 2], x[n // 2 :], state.box)
    return jnp.where(state.generation == 0, state.population.x, x)


@tell.register
def _(spec: NSGA2, state: State, x: Array, f: Array, violation: Array) -> State:
    n = spec.population
    both = merge(Population(x, f, violation), state.population)
    known = distinct(both)
    rank = pareto.ranks(*known, stop=n)
    distance = crowding(both.f, rank)
    # the key of a member of a better front is 0; within the cut front the least crowded first
    cut = jnp.sort(rank.astype(jnp.uint32))[n - 1].astype(jnp.int32)
    key = sortable(-distance) // 2 + 1
    key = jnp.where(rank < cut, 0, jnp.where(rank == cut, key, ~jnp.zeros_like(key)))
    best = jnp.argsort(key, stable=True)[:n]
    best = chosen(jnp.zeros(2 * n, bool).at[best].set(True), n)
    return State(take(both, best), rank[best], distance[best], state.box, state.generation + 1)
