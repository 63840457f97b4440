"""What the elitist algorithms share: tournaments, children, and the ranks of all together.

Parents are drawn as in the authors' NSGA-II and NSGA-III codes: two random orders of the
population, so that every member is in exactly two of the binary tournaments.
"""

from typing import Protocol

import jax
import jax.numpy as jnp
from jax import Array

from .. import pareto
from ..population import Population, distinct, merge, permutation
from ..problem import Box
from .variation import Variation, children


class Elitist(Protocol):
    """The fields that every state has."""

    @property
    def population(self) -> Population: ...
    @property
    def box(self) -> Box: ...
    @property
    def generation(self) -> Array: ...


def tournaments(key: Array, count: int) -> Array:
    """Who meets whom: `count` pairs of members, [2, count] int32."""
    first, second = jax.random.split(key)
    both = jnp.concatenate([permutation(first, count), permutation(second, count)])
    return both.reshape(2, -1)


def brood(key: Array, variation: Variation, state: Elitist, parents: Array) -> Array:
    """As many children as there are parents [N], of the first half with the second.

    Before the first generation nobody has been evaluated, and the population itself is returned.
    """
    half = parents.shape[0] // 2
    x = state.population.x[parents]
    x = children(key, variation, x[:half], x[half:], state.box)
    return jnp.where(state.generation == 0, state.population.x, x)


def ranked(state: Elitist, new: Population) -> tuple[Population, Array, Array]:
    """Children and parents, their fronts [2 N], and the front [] in which the N-th of them is.

    Repeated points rank last.
    """
    both, n = merge(new, state.population), new.x.shape[0]
    rank = pareto.ranks(*distinct(both, state.box), stop=n)
    return both, rank, jnp.sort(rank.astype(jnp.uint32))[n - 1].astype(jnp.int32)
