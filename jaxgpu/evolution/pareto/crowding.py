"""Crowding distance within each front (Deb et al. 2002, doi:10.1109/4235.996017, section III-B)."""

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import numbers

from ..problem import as_floats
from .order import sort_keys


@explain_errors
def crowding_distance(f: Array, rank: Array) -> Array:
    """Return the crowding distance of each point within its own front.

    Sum over the objectives of (next value - previous value) / (range of the front), infinite for
    the two extreme points. An objective that is constant on a front contributes nothing.

    Args:
        f: objectives, [n, m]; non-finite values contribute nothing.
        rank: front of each point, [n] int32.
    Returns:
        [n], the dtype of f. Two sorts per objective; O(n) memory.

    >>> f = jnp.array([[0.0, 4.0], [1.0, 1.0], [4.0, 0.0], [2.0, 0.5]])
    >>> print(crowding_distance(f, jnp.zeros(4, jnp.int32)))
    [  inf 1.375   inf 1.   ]
    """
    f, rank = as_floats("crowding_distance: f", f), numbers("crowding_distance: rank", rank)
    if f.ndim != 2 or 0 in f.shape or jnp.shape(rank) != f.shape[:1]:
        raise ValueError(
            f"crowding_distance: f has shape {list(f.shape)}, rank {list(jnp.shape(rank))}; they "
            "must be [n, m] and [n]"
        )
    rank = jnp.asarray(rank)
    n, m = f.shape
    place = jnp.arange(n, dtype=jnp.int32)
    total = jnp.zeros(n, f.dtype)
    for k in range(m):
        order = jnp.argsort(sort_keys(f[:, k]), stable=True)
        order = order[jnp.argsort(rank[order], stable=True)]
        value, front = f[order, k], rank[order]
        edge = front[1:] != front[:-1]
        yes = jnp.ones(1, bool)
        first, last = jnp.concatenate([yes, edge]), jnp.concatenate([edge, yes])
        start = lax.cummax(jnp.where(first, place, 0), axis=0)
        end = lax.cummin(jnp.where(last, place, n - 1), axis=0, reverse=True)
        extent = value[end] - value[start]
        gap = jnp.roll(value, -1) - jnp.roll(value, 1)
        share = jnp.where(extent > 0, gap / jnp.where(extent > 0, extent, 1), 0)
        share = jnp.where(first | last, jnp.inf, jnp.where(jnp.isfinite(share), share, 0))
        total = total.at[order].add(share.astype(f.dtype), unique_indices=True)
    return total
