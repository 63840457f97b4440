"""What the elitist algorithms share: tournaments, children, and the ranks of all together.

Parents are drawn as in the authors' NSGA-II and NSGA-III codes: two random orders of the
population, so that every member is in exactly two of the binary tournaments.
"""

import jax
import jax.numpy as jnp
from jax import Array

from .. import pareto
from ..population import Population, eliminate_duplicates, merge, permutation
from ..problem import Box
from .variation import SBX, PolynomialMutation, children


def tournaments(key: Array, count: int) -> Array:
    """Who meets whom: `count` pairs of members, [2, count] int32."""
    first, second = jax.random.split(key)
    orders = jnp.concatenate([permutation(first, count), permutation(second, count)])
    return orders.reshape(2, -1)


def offspring(
    key: Array, crossover: SBX, mutation: PolynomialMutation, x: Array, parents: Array, box: Box
) -> Array:
    """As many children as there are parents [N], of the first half with the second. [N, D].

    Args:
        x: decision vectors of the population, [N, D].
        parents: indices into them.
    """
    x, half = x[parents], parents.shape[0] // 2
    return children(key, crossover, mutation, x[:half], x[half:], box)


def rank_merged(old: Population, new: Population, box: Box) -> tuple[Population, Array, Array]:
    """Children and parents, their fronts [2 N], and the front [] in which the N-th of them is.

    Repeated points rank last.
    """
    merged, n = merge(new, old), new.x.shape[0]
    rank = pareto.ranks(*eliminate_duplicates(merged, box), stop=n)
    return merged, rank, jnp.sort(rank.astype(jnp.uint32))[n - 1].astype(jnp.int32)
