"""Base of the elitist algorithms: tournaments, offspring, and ranks of parents and offspring.

As in the authors' NSGA-II and NSGA-III codes, parents come from two random orders of the
population, so every member is in exactly two of the binary tournaments.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from .. import pareto
from ..population import Population, eliminate_duplicates, merge, permutation, sample
from ..problem import Box, Problem
from ..protocol import PopulationAlgorithm, check_inputs, check_tell
from .variation import SBX, PolynomialMutation, children


@pytree
class ElitistState:
    """State of an elitist algorithm; subclasses add the criteria of their tournaments."""

    population: Population
    rank: Array  # [N] front of each member
    box: Box
    generation: Array  # [] number of generations so far


class Elitist[S: ElitistState](PopulationAlgorithm[S]):
    """Base class of algorithms with tournaments and (N + N) survival of parents and offspring."""

    even = True
    crossover: SBX
    mutation: PolynomialMutation

    def init(self, key: Array, problem: Problem) -> S:
        problem = check_inputs("init", self, key, problem)
        members = sample(key, problem, self.batch_size)
        rank = jnp.zeros(self.batch_size, jnp.int32)
        return self.begin(members, rank, box=problem.box, generation=jnp.int32(0))

    def ask(self, state: S, key: Array) -> Array:
        n, x = self.batch_size, state.population.x
        k_meet, k_vary = jax.random.split(key)
        first, second = jax.random.split(k_meet)
        # pairs of the binary tournaments
        pair = jnp.concatenate([permutation(first, n), permutation(second, n)]).reshape(2, -1)
        parents = x[jnp.where(self.wins(state, pair), pair[0], pair[1])]
        a, b = parents[: n // 2], parents[n // 2 :]
        made = children(k_vary, self.crossover, self.mutation, a, b, state.box)
        # the first generation evaluates the initial members
        return jnp.where(state.generation == 0, x, made)

    def tell(self, state: S, x: Array, f: Array, violation: Array | None = None) -> S:
        x, f, violation = check_tell(self, state, x, f, violation)
        merged = merge(Population(x, f, violation), state.population)
        # repeated points rank last; `cut` is the front of the N-th best point
        rank = pareto.ranks(*eliminate_duplicates(merged, state.box), stop=self.batch_size)
        cut = jnp.sort(rank.astype(jnp.uint32))[self.batch_size - 1].astype(jnp.int32)
        after = self.survive(state, merged, rank, cut)
        return replace(after, generation=state.generation + 1)

    @abstractmethod
    def begin(self, members: Population, rank: Array, **placed: Any) -> S:
        """Return the first state; `placed` are the other fields of `ElitistState`."""

    @abstractmethod
    def wins(self, state: S, pair: Array) -> Array:
        """Return whether the first of each pair [2, N] of members wins its tournament. [N] bool."""

    @abstractmethod
    def survive(self, state: S, merged: Population, rank: Array, cut: Array) -> S:
        """Return the state with N survivors of the offspring and parents.

        Args:
            merged: the N offspring, then the N parents.
            rank: [2 N] their fronts.
            cut: [] the last front with survivors.
        """
