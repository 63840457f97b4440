"""Rank points of any number of objectives in one pass and O(n) memory.

The front of a point is the length of the longest chain of points that dominate one another and
end in it. Lexicographic order is a linear extension of dominance, so the chains can be grown
tile by tile in that order: what earlier tiles contribute to a tile is one maximum over pairs,
and within a tile the recursion is iterated until nothing changes, at most as often as the tile
has fronts. Equal rows are adjacent; the group number tells a copy from a dominated point.

A CPU takes that maximum a tile at a time, from cache, and looks at earlier tiles alone: n^2 / 2
pair tests of m comparisons. An accelerator has a launch to pay for each: a tile that is settled
raises all points at once, later ones by its chains and earlier ones, which it cannot dominate, by
nothing: n^2 pair tests in n / WIDE launches. O(n + tile^2) memory, whatever the number of fronts.
"""

import jax.numpy as jnp
from jax import Array, lax

from .order import first_copies, inverse, lexsort, sortable

TILE, FEW = 256, 32  # on a CPU: 1.0e9 pairs/s on two cores; 1024 is slower
WIDE = 1024  # on accelerators
_SWEEPS = 4  # there, between two questions whether a tile is settled: the host asks them


def chain_ranks(f: Array) -> Array:
    """Index of the non-dominated front of each point, 0 the best, exact for all points.

    Args:
        f: objectives to be minimised, [n, m], no NaN.
    Returns:
        [n] int32.
    """
    keys = sortable(f)
    order = lexsort(keys)
    g = keys[order]
    group = jnp.cumsum(first_copies(g), dtype=jnp.int32)
    ranks = lax.platform_dependent(g, group, cpu=ranks_by_tiles, default=ranks_by_waves)
    return ranks[inverse(order)]


def ranks_by_tiles(g: Array, group: Array) -> Array:
    """Ranks [n] of keys [n, m] in lexicographic order, with loops over tiles that fit a cache.

    group: [n] int32, the same of equal rows alone.
    """
    tile = TILE if g.shape[0] > 2 * TILE else FEW
    g, group, n = *_tiled(g, group, tile), g.shape[0]

    def settle(b: Array, ranks: Array) -> Array:
        def earlier(a: Array, best: Array) -> Array:
            return jnp.maximum(best, _longest(ranks[a], g[a], group[a], g[b], group[b]))

        base = lax.fori_loop(0, b, earlier, jnp.zeros(tile, jnp.int32))
        return ranks.at[b].set(_settled(base, g[b], group[b], 1))

    return lax.fori_loop(0, len(g), settle, jnp.zeros(group.shape, jnp.int32)).ravel()[:n]


def ranks_by_waves(g: Array, group: Array) -> Array:
    """As `ranks_by_tiles`, with all points at once behind each of few wide tiles."""
    n = g.shape[0]
    g, group = _tiled(g, group, min(WIDE, n))
    groups, columns = group.ravel(), [g[:, k].ravel() for k in range(g.shape[1])]

    def settle(b: Array, ranks: Array) -> Array:
        own = _settled(ranks[b], g[b], group[b], _SWEEPS)
        raised = _longest(own, g[b], group[b], columns, groups)
        return jnp.maximum(ranks, raised.reshape(ranks.shape))

    return lax.fori_loop(0, len(g), settle, jnp.zeros(group.shape, jnp.int32)).ravel()[:n]


def _tiled(g: Array, group: Array, tile: int) -> tuple[Array, Array]:
    """Keys [tiles, m, tile] and groups [tiles, tile], with points at the end that are worst.

    Columns, because the pair test reads one objective at a time.
    """
    n, m = g.shape
    spare = -n % tile
    last = jnp.array(jnp.iinfo(g.dtype).max, g.dtype)
    g = jnp.concatenate([g, jnp.full((spare, m), last)])
    group = jnp.concatenate([group, jnp.full(spare, n + 1, jnp.int32)])
    return g.reshape(-1, tile, m).transpose(0, 2, 1), group.reshape(-1, tile)


def _settled(base: Array, g: Array, group: Array, sweeps: int) -> Array:
    """Ranks of a tile, from what earlier tiles make of them; `sweeps` between two questions."""

    def iterate(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        rank = before = carry[0]
        for _ in range(sweeps):
            rank, before = jnp.maximum(base, _longest(rank, g, group, g, group)), rank
        return rank, jnp.any(rank != before)

    return lax.while_loop(lambda carry: carry[1], iterate, (base, jnp.bool_(True)))[0]


def _longest(rank: Array, a: Array, of_a: Array, b: Array | list[Array], of_b: Array) -> Array:
    """One more than the highest rank of those of `a` [m, A] that dominate each of `b`, m x [B].

    rank: of a. of_a, of_b: groups.
    """
    beats = of_a[None] != of_b[:, None]
    for k in range(len(a)):
        beats &= a[k][None] <= b[k][:, None]
    return jnp.max(jnp.where(beats, rank[None] + 1, 0), axis=1)
