"""NSGA-III's niching: selection of members for under-represented directions, in one pass of sorts.

Deb & Jain (2014), doi:10.1109/TEVC.2013.2281535, algorithm 4, fills slots sequentially: it takes
the direction with the fewest members so far (a random one of several), and of its candidates the
nearest if it has none yet, else a random one. Direction j with r_j members takes its candidates in
an order that can be drawn beforehand (the nearest first if r_j = 0, the others at random). It takes
the k-th of them when the fewest members of any direction are r_j + k. So the candidates with the
lowest r_j + k are taken, random among equals: the same distribution, without the loop. If the
candidates' room is given, candidates with more room replace the random choices.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from ..pareto.order import dense_ranks


def fill_niches(
    key: Array,
    niche: Array,
    distance: Array,
    taken: Array,
    candidate: Array,
    count: Array,
    room: Array | None = None,
) -> Array:
    """Return a mask of `count` candidates, selected as by the sequential procedure.

    Args:
        key: random key for ties.
        niche: direction of each member, [N] int32 below H.
        distance: distance to that direction, [N].
        taken: number of selected members per direction, [H] int32, without the candidates.
        candidate: mask of candidates, [N] bool, at least `count` of them.
        count: number to select, int32.
        room: room around each, [N]; more room comes first where the choice is random if None.
    Returns:
        [N] bool.
    """
    n, h = niche.shape[0], taken.shape[0]
    k_order, k_tie = jax.random.split(key)
    home = jnp.where(candidate, niche, h)
    index = jnp.arange(n, dtype=jnp.int32)
    apart = jnp.where(candidate, distance, jnp.inf)
    least = jnp.full(h + 1, jnp.inf, distance.dtype).at[home].min(apart)
    nearest = jnp.where(apart == least[home], index, n)
    first = jnp.full(h + 1, n, jnp.int32).at[home].min(nearest)
    empty = jnp.append(taken, 1) == 0
    draw, tie = jax.random.bits(k_order, (n,), jnp.uint32) | 1, None
    if room is not None:
        draw = tie = 1 + dense_ranks(-room).astype(jnp.uint32)
    draw = jnp.where(empty[home] & (first[home] == index), 0, draw)
    order = jnp.argsort(draw, stable=True)
    order = order[jnp.argsort(home[order].astype(jnp.uint32), stable=True)]
    new = jnp.concatenate([jnp.ones(1, bool), home[order][1:] != home[order][:-1]])
    within = index - lax.cummax(jnp.where(new, index, 0), axis=0)
    # no direction has n members, so candidates precede all other members
    level = jnp.append(taken, n)[home[order]] + within
    tie = jax.random.bits(k_tie, (n,), jnp.uint32) if tie is None else tie[order]
    tie = jnp.argsort(tie, stable=True)
    best = tie[jnp.argsort(level[tie].astype(jnp.uint32), stable=True)]
    return jnp.zeros(n, bool).at[order[best]].set(index < count, unique_indices=True)
