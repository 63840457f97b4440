"""Non-dominated fronts of two objectives, peeled in O(n) per front after one sort.

In lexicographic order a point is non-dominated if its second objective is below that of every
preceding point (or if it is a copy of such a point): an exclusive prefix minimum.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from .order import first_copies, inverse, lexsort, sort_keys


def peel_fronts(next_front: Callable[[Array], Array], count: int, stop: int) -> Array:
    """Peel fronts until they hold `stop` of `count` points.

    Args:
        next_front: maps the mask [count] of remaining points to the mask of the next front.
    Returns:
        [count] int32, the index of the front of each point; all others share the next index.
    """

    def step(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rank, front, done = carry
        left = rank < 0
        out = next_front(left)
        return jnp.where(out, front, rank), front + 1, done + jnp.sum(out, dtype=jnp.int32)

    start = jnp.full(count, -1, jnp.int32), jnp.int32(0), jnp.int32(0)
    rank, front, _ = lax.while_loop(lambda c: c[2] < stop, step, start)
    return jnp.where(rank < 0, front, rank)


def ranks2(f: Array, stop: int) -> Array:
    """Return the index of the front of each point, exact until `stop` points have one.

    Args:
        f: objectives to minimise, [n, 2], no NaN.
        stop: peel fronts until they hold at least this many points; all others share the next
            index.
    Returns:
        [n] int32, 0 the non-dominated front.
    """
    keys = sort_keys(f)
    order = lexsort(keys)
    g = keys[order]
    first = first_copies(g)
    original = lax.cummax(jnp.where(first, jnp.arange(len(f), dtype=jnp.int32), 0), axis=0)
    above = jnp.array(jnp.iinfo(keys.dtype).max, keys.dtype)

    def next_front(left: Array) -> Array:
        least = lax.cummin(jnp.where(left & first, g[:, 1], above), axis=0)
        least = jnp.concatenate([above[None], least[:-1]])
        return left & (first & (g[:, 1] < least))[original]

    return peel_fronts(next_front, len(f), min(stop, len(f)))[inverse(order)]
