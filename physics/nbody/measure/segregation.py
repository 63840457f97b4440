"""Mass segregation: are the heavy stars closer together than random stars?

Allison et al. (2009), doi:10.1111/j.1365-2966.2009.14508.x: the length of the minimum spanning tree
of the heaviest stars, compared with that of equally many random stars. No centre is needed.
Olczak, Spurzem & Henning (2011), doi:10.1051/0004-6361/201116902, use the geometric mean of the
edges instead of their sum, which a single distant star cannot dominate.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors


@explain_errors
def tree_edges(x: Array) -> Array:
    """Return the edge lengths [N - 1] of the minimum spanning tree of points [N, D].

    Prim (1957), doi:10.1002/j.1538-7305.1957.tb01515.x: O(N^2) time, O(N) memory.

    >>> tree_edges(jnp.array([[0.0, 0], [1, 0], [5, 0], [2, 0]])).tolist()
    [1.0, 1.0, 3.0]
    """
    x = jnp.asarray(ranges.numbers("tree_edges: x", x, ("N", "D")))
    x = x.astype(float) if jnp.issubdtype(x.dtype, jnp.integer) else x
    if not x.shape[0]:
        raise ValueError("tree_edges: x has shape [0, D]; it must be [N, D], N >= 1")
    count, x = x.shape[0], x.T

    def distances(i: Array) -> Array:
        d = x - x[:, i, None]
        r2 = jnp.sum(d * d, 0)
        return jnp.where(r2 > 0, jnp.sqrt(jnp.where(r2 > 0, r2, 1)), 0)

    def join(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        away, inside, edges = carry
        nearest = jnp.argmin(jnp.where(inside, jnp.inf, away))
        edges = edges.at[i].set(away[nearest])
        return jnp.minimum(away, distances(nearest)), inside.at[nearest].set(True), edges

    first = jnp.zeros(count, bool).at[0].set(True)
    start = distances(jnp.int32(0)), first, jnp.zeros(count - 1, x.dtype)
    return lax.fori_loop(0, count - 1, join, start)[2]


@explain_errors
def segregation_ratio(
    key: Array, x: Array, m: Array, heaviest: int, draws: int = 500, geometric: bool = False
) -> tuple[Array, Array]:
    """Return Lambda_MSR and its standard error: 1 without segregation, above 1 with it.

    Args:
        key: JAX random key.
        x: positions [N, D], projected or not.
        m: masses [N]; those of tracers may be any label that orders them.
        heaviest: number of heaviest stars in the tree, at least 2 and below N.
        draws: number of random sets of the same size to compare with.
        geometric: compare geometric means of the edges (Gamma_MSR of Olczak et al.).

    Cost O(draws heaviest^2), memory O(draws heaviest).

    >>> x = jax.random.normal(jax.random.key(0), (60, 2))
    >>> m = 1 / jnp.linalg.norm(x, axis=1)  # the heaviest are in the middle
    >>> ratio, error = segregation_ratio(jax.random.key(1), x, m, 6)
    >>> bool(ratio > 1 + 2 * error)
    True
    """
    count = m.shape[0]
    if not 2 <= heaviest < count:
        raise ValueError(
            f"segregation_ratio: heaviest {heaviest} of {count} stars; must be 2 to {count - 1}; "
            "use fewer stars"
        )

    def length(index: Array) -> Array:
        edges = tree_edges(jnp.take(x, index, axis=0))
        return jnp.exp(jnp.mean(jnp.log(edges))) if geometric else jnp.sum(edges)

    draw = lambda key: jax.random.choice(key, count, (heaviest,), replace=False)
    drawn = jax.vmap(lambda key: length(draw(key)))(jax.random.split(key, draws))
    own = length(lax.top_k(m, heaviest)[1])
    return jnp.mean(drawn) / own, jnp.std(drawn) / own
