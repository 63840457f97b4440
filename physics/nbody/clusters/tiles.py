"""The bodies that are due at a moment, gathered into tiles of fixed size and advanced.

The number of tiles is known at run time, so that one program serves a block of one body and a block
of all, at the cost of those that are due. Many bodies go in large tiles, which spend little on
gathering; what is left goes in small ones, which waste few lanes. Most blocks are of few bodies:
all are found by counting bits, a vector of them at a time, without a scatter.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

_FEW, _ROW = 64, 128

# (indices [B] of bodies, the bodies) -> the bodies moved, and how many of them [B] bool floored
type Move[T] = Callable[[Array, T], tuple[T, Array]]


def advance[T](group: T, due: Array, move: Move[T], tile: int, bulk: int = 0) -> tuple[T, Array]:
    """`group` with those bodies moved that are `due` [N]; how many steps were floored.

    Args:
        group: pytree of arrays [..., N].
        due: which bodies.
        move: moves the bodies of a tile; spare lanes hold the last body, and are dropped.
        tile: bodies in a small tile.
        bulk: bodies in a large tile; 0 for small ones alone.
    """
    count = due.shape[0]
    if count == 0:
        return group, jnp.int32(0)
    tile, bulk = min(tile, count), bulk if bulk <= count else 0
    index, total = indices(due, max(tile, bulk))

    def each(some: Array, carry: tuple) -> tuple:
        group, floored = carry
        old = jax.tree.map(lambda all: jnp.take(all, some, axis=-1, mode="clip"), group)
        new, low = move(some, lax.optimization_barrier(old))
        put = lambda all, part: all.at[..., some].set(part, mode="drop")
        low = jnp.sum(low & (some < count), dtype=jnp.int32)
        return jax.tree.map(put, group, new), floored + low

    return swept(index, total, count, (tile, bulk), each, (group, jnp.int32(0)))


def swept[C](
    index: Array,
    total: Array,
    count: int,
    widths: tuple[int, int],
    each: Callable[[Array, C], C],
    carry: C,
) -> C:
    """What is carried through `each` of all tiles, in order.

    Args:
        index: of bodies; those behind the first `total` mean nothing.
        total: how many are to be moved.
        count: of all bodies; the index of spare lanes.
        widths: bodies in a small tile and in a large one, which may be 0 for none.
        each: (indices [B], carry) -> carry, with the bodies of a tile moved.
        carry: all bodies, and what goes with them.
    """
    tile, bulk = widths

    def loop(first: Array, tiles: Array, width: int, carry: C) -> C:
        lane = jnp.arange(width, dtype=jnp.int32)

        def body(i: Array, carry: C) -> C:
            start = first + i * width
            some = lax.dynamic_slice(index, (start,), (width,))
            return each(jnp.where(start + lane < total, some, count), carry)

        return lax.fori_loop(0, tiles, body, carry)

    done = jnp.int32(0)
    if bulk:
        # a large tile that is nearly full costs less than the small ones instead
        tiles = lax.div(total + bulk // 4, jnp.int32(bulk))
        carry, done = loop(done, tiles, bulk, carry), tiles * bulk
    rest = jnp.maximum(total - done, 0)
    return loop(done, lax.div(rest + tile - 1, jnp.int32(tile)), tile, carry)


def indices(due: Array, spare: int) -> tuple[Array, Array]:
    """Indices of the bodies that are due, in front of `spare` and more of N; how many there are."""
    count = due.shape[0]
    lanes = jnp.pad(due, (0, -count % _ROW)).reshape(-1, _ROW // 32, 32)
    bit = jnp.left_shift(jnp.uint32(1), jnp.arange(32, dtype=jnp.uint32))
    words = jnp.sum(jnp.where(lanes, bit[None, None], 0), 2, dtype=jnp.uint32)
    held = jnp.sum(lax.population_count(words).astype(jnp.int32), 1, dtype=jnp.int32)
    ends = running(held)

    def few(k: Array, index: Array) -> Array:
        some = _ranked(words, ends - held, ends, k * _FEW, count)
        return lax.dynamic_update_slice(index, some, (k * _FEW,))

    turns = lax.div(ends[-1] + _FEW - 1, jnp.int32(_FEW))
    index = jnp.full(-(-(count + spare) // _FEW) * _FEW, count, jnp.int32)
    return lax.fori_loop(0, turns, few, index)[: count + spare], ends[-1]


def _ranked(words: Array, start: Array, ends: Array, first: Array, count: int) -> Array:
    """Indices [_FEW] of the bodies due from the rank `first` on, then `count`.

    words: [R, W] bits of the rows, of ranks from `start` [R] to before `ends` [R].
    """
    rank = first + jnp.arange(_FEW, dtype=jnp.int32)
    row = jnp.sum(ends[:, None] <= rank[None], 0, dtype=jnp.int32)
    rest = rank - jnp.take(start, row, mode="clip")
    of_row = jnp.take(words, row, axis=0, mode="clip")
    word, lane = of_row[:, 0], jnp.zeros_like(rank)
    for k in range(1, words.shape[1]):
        beyond, rest = _beyond(word, rest)
        word, lane = jnp.where(beyond, of_row[:, k], word), jnp.where(beyond, 32 * k, lane)
    for width in (16, 8, 4, 2, 1):
        low = word & jnp.uint32(2**width - 1)
        beyond, rest = _beyond(low, rest)
        word = jnp.where(beyond, word >> jnp.uint32(width), low)
        lane = lane + jnp.where(beyond, width, 0)
    return jnp.where(rank < ends[-1], row * _ROW + lane, count)


def _beyond(word: Array, rank: Array) -> tuple[Array, Array]:
    """Whether the bit of that rank is not in the word, and its rank in what comes after."""
    bits = lax.population_count(word).astype(jnp.int32)
    return rank >= bits, jnp.where(rank >= bits, rank - bits, rank)


def running(x: Array) -> Array:
    """Sums [R] of the first, the first two ..., in one pass where they are few."""
    if x.shape[0] > 512:
        return lax.associative_scan(jnp.add, x)
    index = jnp.arange(x.shape[0], dtype=jnp.int32)
    return jnp.sum(jnp.where(index[:, None] <= index[None], x[:, None], 0), 0, dtype=x.dtype)
