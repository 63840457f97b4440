"""Non-dominated fronts of three objectives, in O(n log n) per front and O(n) memory.

Kung, Luccio & Preparata (1975), doi:10.1145/321906.321910: divide and conquer on the first
objective, here as data-parallel passes over the whole array instead of a recursion. The points are
in lexicographic order. A block of 2B adjacent positions splits in halves. A point of the right half
is dominated by the left half exactly if the minimum f3 among the left points that precede it in f2
order is not above its own. The f2 order of every block follows from that of the block of twice its
size by a stable partition, so only the input is sorted. The order does not depend on which points
have been peeled, so all fronts share it. Blocks of `LEAF_THICK` positions are compared pair by
pair.

Each front takes log2(n / LEAF) passes of a gather, a prefix minimum and a scatter, and n LEAF / 2
pair tests; memory is n log2(n / LEAF) int32 words.
"""

import jax.numpy as jnp
from jax import Array, lax

from .fronts2 import peel_fronts
from .order import first_copies, inverse, lexsort, sort_keys

LEAF = 64


def ranks3(f: Array, stop: int) -> Array:
    """Return the front index of each point [n, 3], exact until `stop` have one, as in `ranks2`."""
    n = f.shape[0]
    depth = max(0, (n - 1).bit_length() - LEAF.bit_length() + 1)
    size = LEAF << depth
    keys = sort_keys(f)
    order = lexsort(keys)
    g = jnp.concatenate([keys[order], jnp.full((size - n, 3), max_key(keys))])
    place = jnp.arange(size, dtype=jnp.int32)
    real = place < n
    first = jnp.concatenate([first_copies(g[:n]), jnp.zeros(size - n, bool)])
    original = lax.cummax(jnp.where(first, place, 0), axis=0)
    short, long = _partitions(jnp.argsort(g[:, 1], stable=True).astype(jnp.int32), depth)

    def next_front(left: Array) -> Array:
        left &= real
        active = jnp.where(left & first, g[:, 2], max_key(keys))
        beaten = _dominated_by_halves(active, g[:, 2], short, long) | _dominated_in_leaf(active, g)
        return left & ~beaten[original]

    return peel_fronts(next_front, size, min(stop, n))[:n][inverse(order)]


def max_key(keys: Array) -> Array:
    """Return a key above every number, so that it dominates nothing."""
    return jnp.array(jnp.iinfo(keys.dtype).max, keys.dtype)


def _row_length(size: int) -> int:
    """Return positions per row, about sqrt(size): scans over rows cost as much as in a row."""
    return 1 << ((size.bit_length() + 1) // 2)


def _partitions(q: Array, depth: int) -> tuple[list[Array], Array]:
    """Return the positions of every block in f2 order, given the f2 order of all positions.

    Blocks of at most a row are returned as one [blocks, block] array per length; longer ones as one
    [lengths, size] array, so that a loop can run over them.
    """
    size = q.shape[0]
    i = jnp.arange(size, dtype=jnp.int32)

    def halve(q: Array, half: Array | int) -> Array:
        right = (q & half) > 0
        block = i & ~(2 * half - 1)
        count = jnp.cumsum(right, dtype=jnp.int32) - block // 2
        to = jnp.where(right, block + half + count - 1, i - count)
        return jnp.zeros(size, jnp.int32).at[to].set(q, unique_indices=True)

    row = _row_length(size)
    lengths = [size >> level for level in range(depth)]
    halves = jnp.array([b // 2 for b in lengths if b > row], jnp.int32)
    q, long = lax.scan(lambda q, half: (halve(q, half), q), q, halves)
    short = []
    for b in lengths:
        if b <= row:
            short.append(q.reshape(-1, b))
            q = halve(q, b // 2)
    return short, long


def _dominated_in_leaf(active: Array, g: Array) -> Array:
    """Return a mask [size] of positions dominated by an active earlier one in the same leaf."""
    b2, b3 = (g[:, k].reshape(-1, LEAF)[:, :, None] for k in (1, 2))
    before = jnp.tril(jnp.ones((LEAF, LEAF), bool), -1)[None]
    a3 = active.reshape(-1, 1, LEAF)
    return jnp.any((b2.reshape(-1, 1, LEAF) <= b2) & (a3 <= b3) & before, axis=2).ravel()


def _dominated_by_halves(active: Array, f3: Array, short: list[Array], long: Array) -> Array:
    """Return a mask of right-half positions dominated by an active left-half one of some block."""
    size = active.shape[0]
    row = _row_length(size)
    above = jnp.array(jnp.iinfo(active.dtype).max, active.dtype)
    beaten = jnp.zeros(size, bool)
    for q in short:
        right = (q & (q.shape[1] // 2)) > 0
        least = lax.cummin(jnp.where(right, above, active[q]), axis=1)
        hit = right & (least <= f3[q])
        beaten = beaten.at[q.ravel()].max(hit.ravel(), unique_indices=True)
    if not long.shape[0]:
        return beaten
    i = jnp.arange(size // row, dtype=jnp.int32)

    def merge_level(beaten: Array, q_half: tuple[Array, Array]) -> tuple[Array, None]:
        q, half = q_half
        right = (q & half) > 0
        least = lax.cummin(jnp.where(right, above, active[q]).reshape(-1, row), axis=1)
        rows = 2 * half // row
        same = (i[:, None] // rows == i[None] // rows) & (i[:, None] > i[None])
        carry = jnp.min(jnp.where(same, least[None, :, -1], above), axis=1)
        hit = right & (jnp.minimum(least, carry[:, None]).ravel() <= f3[q])
        return beaten.at[q].max(hit, unique_indices=True), None

    lengths = jnp.array([size >> (k + 1) for k in range(long.shape[0])], jnp.int32)
    return lax.scan(merge_level, beaten, (long, lengths))[0]
