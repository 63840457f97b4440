"""NSGA-II: survival of the least dominated, then of the least crowded.

Deb, Pratap, Agarwal & Meyarivan (2002), doi:10.1109/4235.996017, with constrained domination
(section VI). Time O(m N log N) a front for up to three objectives, memory O(N log N) words.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, size

from ..pareto.crowding import crowding
from ..pareto.order import sortable
from ..population import Population, chosen, even, sample, take
from ..problem import Box, Problem
from ..protocol import ask, init, tell
from .mating import brood, ranked, tournaments
from .variation import Variation


@pytree
class NSGA2:
    """What to run. Numbers are leaves: `vmap` over them to tune a batch of runs at once."""

    variation: Variation = Variation()
    population: int = size(default=100, least=4)  # N, even

    def __post_init__(self) -> None:
        even("NSGA2", self.population)


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
    k_meet, k_vary = jax.random.split(key)
    pair = tournaments(k_meet, spec.population)
    rank, crowding = state.rank[pair], state.crowding[pair]
    win = (rank[0] < rank[1]) | ((rank[0] == rank[1]) & (crowding[0] >= crowding[1]))
    return brood(k_vary, spec.variation, state, jnp.where(win, pair[0], pair[1]))


@tell.register
def _(spec: NSGA2, state: State, x: Array, f: Array, violation: Array) -> State:
    n = spec.population
    both, rank, cut = ranked(state, Population(x, f, violation))
    distance = crowding(both.f, rank)
    # the key of a member of a better front is 0; within the cut front the least crowded first
    key = sortable(-distance) // 2 + 1
    key = jnp.where(rank < cut, 0, jnp.where(rank == cut, key, ~jnp.zeros_like(key)))
    best = jnp.argsort(key, stable=True)[:n]
    best = chosen(jnp.zeros(2 * n, bool).at[best].set(True), n)
    return State(take(both, best), rank[best], distance[best], state.box, state.generation + 1)
