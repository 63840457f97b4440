"""Sums over all pairs of targets and sources, without ever storing one value a pair.

Every sum is one variadic reduction over the sources: all outputs in one pass, the pair's expression
computed once for all of them. Sources are the leading, reduced axis, so that targets lie along the
machine's vectors and no sum has to be reordered to be fast. Targets go in tiles of 512, beyond
which XLA's CPU backend stops vectorising the loop (0.6e9 pairs a second and core become 0.13e9).
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

TILE = 512

# (rows of the targets [1, K], rows of the sources [N, 1]) -> terms of every pair
type Terms = Callable[[list[Array], list[Array]], list[Array]]


def summed(
    terms: Terms, targets: list[Array], sources: list[Array], outputs: int, most: int = TILE
) -> Array:
    """Sum of `terms` over all sources for each target, [outputs, K].

    Args:
        terms: of a pair, from the rows of all targets and the rows of all sources.
        targets: arrays [K] or [C, K], whose rows follow one another.
        sources: arrays [N] or [C, N].
        outputs: how many terms a pair has.
        most: targets in a tile.

    Forward mode runs through; reverse mode does not.

    >>> apart = lambda t, s: [(s[0] - t[0]) * s[1]]
    >>> x, m = jnp.array([1.0, 2.0]), jnp.array([10.0, 1.0])
    >>> summed(apart, [jnp.array([0.0, 1.0])], [x, m], 1).tolist()
    [[12.0, 1.0]]
    """
    zero = (jnp.zeros((), targets[0].dtype),) * outputs
    add = lambda a, b: tuple(p + q for p, q in zip(a, b))
    # a gather or stack fused into the loop would cost it its vectors: 6 to 13 times
    across = _rows(lax.optimization_barrier([s[..., None] for s in sources]))

    def tile(targets: list[Array]) -> Array:
        along = _rows(lax.optimization_barrier([t[..., None, :] for t in targets]))
        sums = lax.reduce(tuple(terms(along, across)), zero, add, (0,))
        return jnp.stack(lax.optimization_barrier(sums))

    count = targets[0].shape[-1]
    if count <= most:
        return tile(targets)
    tiles = -(-count // most)
    spare = [(0, 0), (0, tiles * most - count)]
    padded = [jnp.pad(t.reshape(-1, count), spare).reshape(-1, tiles, most) for t in targets]
    sums = lax.map(tile, [jnp.moveaxis(t, 1, 0) for t in padded])
    return jnp.moveaxis(sums, 0, 1).reshape(outputs, -1)[:, :count]


def _rows(groups: list[Array]) -> list[Array]:
    """Every row [1, K] or [N, 1] of arrays of these; slices of what is in memory."""
    return [row for group in groups for row in (group if group.ndim > 2 else [group])]
