"""NSGA-II: survival of the least dominated, then of the least crowded.

Deb, Pratap, Agarwal & Meyarivan (2002), doi:10.1109/4235.996017, with constrained domination
(section VI). Time O(m N log N) a front for up to three objectives, memory O(N log N) words.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, size

from ..pareto.crowding import crowding_distance
from ..pareto.order import sortable
from ..population import Population, flatnonzero, sample, take
from ..problem import Box, Problem
from ..protocol import Algorithm, check_pop_size, checked, told
from .mating import offspring, rank_merged, tournaments
from .variation import SBX, PolynomialMutation


@pytree
class NSGA2(Algorithm["State"]):
    """What to run. Numbers are leaves: `vmap` over them to tune a batch of runs at once."""

    pop_size: int = size(default=100, least=4)  # N, even
    crossover: SBX = SBX()
    mutation: PolynomialMutation = PolynomialMutation()

    def __post_init__(self) -> None:
        check_pop_size("NSGA2", self.pop_size, even=True)

    @property
    def batch_size(self) -> int:
        """N."""
        return self.pop_size

    def init(self, key: Array, problem: Problem) -> "State":
        """Members drawn uniformly in the box."""
        problem, n = checked("init", self, key, problem), self.pop_size
        members = sample(key, problem, n)
        return State(
            population=members,
            rank=jnp.zeros(n, jnp.int32),
            crowding=jnp.zeros(n, members.x.dtype),
            box=problem.box,
            generation=jnp.int32(0),
        )

    def ask(self, state: "State", key: Array) -> Array:
        """Children of the winners of binary tournaments; every member is in two of them."""
        k_meet, k_vary = jax.random.split(key)
        pair = tournaments(k_meet, self.pop_size)
        rank, crowding = state.rank[pair], state.crowding[pair]
        win = (rank[0] < rank[1]) | ((rank[0] == rank[1]) & (crowding[0] >= crowding[1]))
        x, parents = state.population.x, jnp.where(win, pair[0], pair[1])
        made = offspring(k_vary, self.crossover, self.mutation, x, parents, state.box)
        # the first members are still to be evaluated
        return jnp.where(state.generation == 0, x, made)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """Of parents and children the N of the first fronts, in the last by crowding distance."""
        x, f, violation = told(self, state, x, f, violation)
        n = self.pop_size
        merged, rank, cut = rank_merged(state.population, Population(x, f, violation), state.box)
        distance = crowding_distance(merged.f, rank)
        # the key of a member of a better front is 0; within the cut front the least crowded first
        key = sortable(-distance) // 2 + 1
        key = jnp.where(rank < cut, 0, jnp.where(rank == cut, key, ~jnp.zeros_like(key)))
        best = jnp.argsort(key, stable=True)[:n]
        best = flatnonzero(jnp.zeros(2 * n, bool).at[best].set(True), n)
        return State(
            population=take(merged, best),
            rank=rank[best],
            crowding=distance[best],
            box=state.box,
            generation=state.generation + 1,
        )


@pytree
class State:
    """Where the run is."""

    population: Population
    rank: Array  # [N] front of each member
    crowding: Array  # [N] crowding distance within the front
    box: Box
    generation: Array  # []
