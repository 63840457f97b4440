"""Rank points of any number of objectives in one pass and O(n) memory.

The front of a point is the length of the longest chain of points that dominate one another and
end in it. Lexicographic order is a linear extension of dominance, so the chains can be grown
tile by tile in that order: what earlier tiles contribute to a tile is one maximum over pairs,
and within a tile the recursion is iterated until nothing changes, at most as often as the tile
has fronts. Equal rows are adjacent; the group number tells a copy from a dominated point.

n^2 / 2 pair tests of m comparisons, whatever the number of fronts; O(n + TILE^2) memory.
"""

import jax.numpy as jnp
from jax import Array, lax

from .order import first_copies, inverse, lexsort, sortable

TILE = 256  # 1.0e9 pairs/s on two CPU cores; 1024 is slower


def chain_ranks(f: Array) -> Array:
    """Index of the non-dominated front of each point, 0 the best, exact for all points.

    Args:
        f: objectives to be minimised, [n, m], no NaN.
    Returns:
        [n] int32.
    """
    n, m = f.shape
    tile = TILE if n > 2 * TILE else 32
    count = -(-n // tile)
    keys = sortable(f)
    order = lexsort(keys)
    g = keys[order]
    group = jnp.cumsum(first_copies(g), dtype=jnp.int32)
    last = jnp.array(jnp.iinfo(keys.dtype).max, keys.dtype)
    g = jnp.concatenate([g, jnp.full((count * tile - n, m), last)])
    group = jnp.concatenate([group, jnp.full(count * tile - n, n + 1, jnp.int32)])
    # tiles of columns, because the pair test reads one objective at a time
    g, group = g.reshape(count, tile, m).transpose(0, 2, 1), group.reshape(count, tile)

    def longest(rank: Array, a: Array, b: Array) -> Array:
        """One more than the highest rank in tile a of those that dominate each of tile b."""
        beats = group[a][None] != group[b][:, None]
        for k in range(m):
            beats &= g[a, k][None] <= g[b, k][:, None]
        return jnp.max(jnp.where(beats, rank[None] + 1, 0), axis=1)

    def settle(b: Array, ranks: Array) -> Array:
        def earlier(a: Array, best: Array) -> Array:
            return jnp.maximum(best, longest(ranks[a], a, b))

        base = lax.fori_loop(0, b, earlier, jnp.zeros(tile, jnp.int32))

        def iterate(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            rank = jnp.maximum(base, longest(carry[0], b, b))
            return rank, jnp.any(rank != carry[0])

        rank, _ = lax.while_loop(lambda c: c[1], iterate, (base, jnp.bool_(True)))
        return ranks.at[b].set(rank)

    ranks = lax.fori_loop(0, count, settle, jnp.zeros((count, tile), jnp.int32))
    return ranks.ravel()[:n][inverse(order)]
