"""NSGA-II: survival by non-dominated rank, then by crowding distance.

Deb, Pratap, Agarwal & Meyarivan (2002), doi:10.1109/4235.996017, with constrained domination
(section VI). Time O(m N log N) per front for up to three objectives, memory O(N log N) words.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree, size

from ..pareto.crowding import crowding_distance
from ..pareto.order import sort_keys
from ..population import Population, flatnonzero, take
from .mating import Elitist, ElitistState
from .variation import SBX, PolynomialMutation


@pytree
class NSGA2(Elitist["State"]):
    """NSGA-II (Deb et al. 2002). Numbers are leaves: `vmap` over them to tune a batch of runs."""

    pop_size: int = size(default=100, least=4)  # N, even
    crossover: SBX = SBX()
    mutation: PolynomialMutation = PolynomialMutation()

    def begin(self, members: Population, rank: Array, **placed: Any) -> "State":
        crowding = jnp.zeros(self.pop_size, members.x.dtype)
        return State(population=members, rank=rank, crowding=crowding, **placed)

    def wins(self, state: "State", pair: Array) -> Array:
        """Return whether the first of each pair wins: by front, within a front if less crowded."""
        rank, crowding = state.rank[pair], state.crowding[pair]
        return (rank[0] < rank[1]) | ((rank[0] == rank[1]) & (crowding[0] >= crowding[1]))

    def survive(self, state: "State", merged: Population, rank: Array, cut: Array) -> "State":
        """Keep the first fronts, and from the last one the least crowded members."""
        n = self.pop_size
        distance = crowding_distance(merged.f, rank)
        # members of better fronts get key 0; in the cut front the least crowded come first
        key = sort_keys(-distance) // 2 + 1
        key = jnp.where(rank < cut, 0, jnp.where(rank == cut, key, ~jnp.zeros_like(key)))
        best = jnp.argsort(key, stable=True)[:n]
        best = flatnonzero(jnp.zeros(2 * n, bool).at[best].set(True), n)
        return replace(
            state, population=take(merged, best), rank=rank[best], crowding=distance[best]
        )


@pytree
class State(ElitistState):
    """State of an NSGA-II run."""

    crowding: Array  # [N] crowding distance within the front
