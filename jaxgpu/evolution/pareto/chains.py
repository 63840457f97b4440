"""Non-dominated ranks for any number of objectives in one pass and O(n) memory.

The front of a point is the length of the longest chain of points that dominate one another and end
in it. Lexicographic order is a linear extension of dominance, so chains can be extended tile by
tile in that order. The contribution of earlier tiles to a tile is one maximum over pairs. Within a
tile the recursion is iterated until it converges, in at most as many iterations as the tile has
fronts. Equal rows are adjacent; the group number distinguishes a copy from a dominated point.

A CPU evaluates that maximum tile by tile, from cache, and only for earlier tiles: n^2 / 2 pair
tests of m comparisons. An accelerator pays for each kernel launch, so a finished tile updates all
points in one batch: n^2 pair tests in n / WIDE launches. Earlier points are not dominated by the
tile, so the update leaves them unchanged. O(n + tile^2) memory for any number of fronts.
"""

import jax.numpy as jnp
from jax import Array, lax

from .order import first_copies, inverse, lexsort, sort_keys

TILE, SMALL_TILE = 256, 32  # on a CPU: 1.0e9 pairs/s on two cores; 1024 is slower
WIDE_TILE = 1024  # tile on accelerators
_SWEEPS = 4  # iterations on accelerators between convergence checks, which involve the host


def chain_ranks(f: Array) -> Array:
    """Return the index of the non-dominated front of each point, 0 the best, exact for all points.

    Args:
        f: objectives to minimise, [n, m], no NaN.
    Returns:
        [n] int32.
    """
    keys = sort_keys(f)
    order = lexsort(keys)
    g = keys[order]
    group = jnp.cumsum(first_copies(g), dtype=jnp.int32)
    ranks = lax.platform_dependent(g, group, cpu=ranks_by_tiles, default=ranks_by_waves)
    return ranks[inverse(order)]


def ranks_by_tiles(g: Array, group: Array) -> Array:
    """Return the ranks [n] of keys [n, m] in lexicographic order, by loops over cache-sized tiles.

    group: [n] int32, equal only for equal rows.
    """
    tile = TILE if g.shape[0] > 2 * TILE else SMALL_TILE
    g, group, n = *_pad_to_tiles(g, group, tile), g.shape[0]

    def update_tile(b: Array, ranks: Array) -> Array:
        def add_tile(a: Array, best: Array) -> Array:
            return jnp.maximum(best, _longest_chain(ranks[a], g[a], group[a], g[b], group[b]))

        base = lax.fori_loop(0, b, add_tile, jnp.zeros(tile, jnp.int32))
        return ranks.at[b].set(_iterate_tile_ranks(base, g[b], group[b], 1))

    return lax.fori_loop(0, len(g), update_tile, jnp.zeros(group.shape, jnp.int32)).ravel()[:n]


def ranks_by_waves(g: Array, group: Array) -> Array:
    """Return ranks as `ranks_by_tiles`; each of few wide tiles updates all points in one batch."""
    n = g.shape[0]
    g, group = _pad_to_tiles(g, group, min(WIDE_TILE, n))
    groups, columns = group.ravel(), [g[:, k].ravel() for k in range(g.shape[1])]

    def update_all(b: Array, ranks: Array) -> Array:
        own = _iterate_tile_ranks(ranks[b], g[b], group[b], _SWEEPS)
        raised = _longest_chain(own, g[b], group[b], columns, groups)
        return jnp.maximum(ranks, raised.reshape(ranks.shape))

    return lax.fori_loop(0, len(g), update_all, jnp.zeros(group.shape, jnp.int32)).ravel()[:n]


def _pad_to_tiles(g: Array, group: Array, tile: int) -> tuple[Array, Array]:
    """Return keys [tiles, m, tile] and groups [tiles, tile], padded with worst points.

    Keys are stored by objective, because the pair test reads one objective at a time.
    """
    n, m = g.shape
    spare = -n % tile
    last = jnp.array(jnp.iinfo(g.dtype).max, g.dtype)
    g = jnp.concatenate([g, jnp.full((spare, m), last)])
    group = jnp.concatenate([group, jnp.full(spare, n + 1, jnp.int32)])
    return g.reshape(-1, tile, m).transpose(0, 2, 1), group.reshape(-1, tile)


def _iterate_tile_ranks(base: Array, g: Array, group: Array, sweeps: int) -> Array:
    """Iterate the ranks of a tile from `base` to convergence, checked every `sweeps` iterations."""

    def iterate(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        rank = before = carry[0]
        for _ in range(sweeps):
            rank, before = jnp.maximum(base, _longest_chain(rank, g, group, g, group)), rank
        return rank, jnp.any(rank != before)

    return lax.while_loop(lambda carry: carry[1], iterate, (base, jnp.bool_(True)))[0]


def _longest_chain(
    rank: Array, a: Array, of_a: Array, b: Array | list[Array], of_b: Array
) -> Array:
    """Return 1 + the highest rank of the points `a` [m, A] that dominate each point `b` (m x [B]).

    rank: ranks of a. of_a, of_b: groups.
    """
    beats = of_a[None] != of_b[:, None]
    for k in range(len(a)):
        beats &= a[k][None] <= b[k][:, None]
    return jnp.max(jnp.where(beats, rank[None] + 1, 0), axis=1)
