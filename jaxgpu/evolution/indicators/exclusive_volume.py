"""Exact exclusive hypervolume contribution of each point, for up to four objectives.

The region that only point i covers is its box [f_i, r] without the boxes of its limits max(f_j,
f_i). Only limits that no other limit dominates border on the region: about 6 of a thousand points
in three objectives, 18 in four. They are found by repeatedly selecting the limit with the least
total excess over f_i and removing the limits that it dominates: one pass over the points per
neighbor, without a sort (compare the bounded set of While, Bradstreet & Barone 2012,
doi:10.1109/TEVC.2010.2077298). The remaining region is swept along the third objective, as heights
over a grid of the first and the fourth. All terms are positive, so nothing cancels, and float32
keeps its digits where differences of volumes lose them.

With k neighbors: O(n^2 k + n k^3) time and O(n + k^2) memory, vectorised in tiles of points.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import Range, refuse

from .arguments import check_points, check_vector

TILE = 16  # points evaluated in parallel


@explain_errors
def contributions(f: Array, reference: Array, neighbours: int = 64) -> Array:
    """Return the exclusive hypervolume contribution of every point.

    Args:
        f: objectives to minimise, [n, m], 2 <= m <= 4. Points that are not better than the
            reference in every objective contribute nothing and do not affect others. NaN and -inf
            raise if values are known; in a compiled program a point with NaN is ignored.
        reference: [m], worse than the points in every objective.
        neighbours: maximum number of points that border on a point's region. A point with more gets
            NaN; increase the maximum then.
    Returns:
        [n]; 0 for dominated and repeated points. Not differentiable in reverse mode; for that, and
        for more objectives, use `hypervolume_by_rays`.

    >>> print(contributions(jnp.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.5]]), jnp.array([3.0, 3.0])))
    [1.  1.  0.5]
    """
    f = check_points("contributions: f", f)
    n, m = f.shape
    if not 2 <= m <= 4:
        raise ValueError(f"contributions: {m} objectives; must be 2 to 4; use hypervolume_by_rays")
    reference = check_vector("contributions: reference", reference, f)
    refuse("contributions: neighbours", neighbours, Range(least=1, whole=True, one=True))
    inside = jnp.all(f < reference[None], axis=1, keepdims=True)
    # missing objectives are padded by 0 for all points and 1 for the reference
    pad = 4 - m
    top = jnp.append(reference, jnp.ones(pad, f.dtype))
    mine = jnp.pad(jnp.where(inside, f, reference[None]), ((0, 0), (0, pad)))
    theirs = jnp.pad(jnp.where(inside, f, jnp.inf), ((0, 0), (0, pad)))

    def tile_volumes(rows: Array) -> Array:
        own = mine[rows]
        found, count = _find_bordering_points(theirs, own, rows, neighbours)
        limits = theirs.at[found].get(mode="fill", fill_value=jnp.inf)
        limits = jnp.minimum(jnp.maximum(limits, own[:, None]), top[None, None])
        used = jnp.minimum(jnp.max(count), neighbours)
        volume = jax.vmap(_uncovered_volume, (0, 0, None, None))(limits, own, top, used)
        return jnp.where(count > neighbours, jnp.nan, volume)

    rows = jnp.arange(-(-n // TILE) * TILE, dtype=jnp.int32).reshape(-1, TILE)
    return lax.map(tile_volumes, jnp.minimum(rows, n - 1)).reshape(-1)[:n]


def _find_bordering_points(
    theirs: Array, own: Array, rows: Array, room: int
) -> tuple[Array, Array]:
    """Return the points whose limits are not dominated, and their number. [T, room], [T] int32.

    Unused entries are n. The number may exceed the room.
    """
    n, index = theirs.shape[0], jnp.arange(theirs.shape[0], dtype=jnp.int32)
    columns = list(zip(theirs.T, own.T))
    excess = sum(jnp.maximum(f[None] - low[:, None], 0) for f, low in columns)
    excess = jnp.where(index[None] == rows[:, None], jnp.inf, excess)

    def remove_dominated_limits(
        state: tuple[Array, Array, Array, Array],
    ) -> tuple[Array, Array, Array, Array]:
        excess, found, count, step = state
        least = jnp.min(excess, axis=1)
        one = jnp.min(jnp.where(excess <= least[:, None], index[None], n), axis=1)
        left = jnp.isfinite(least)
        one = jnp.where(left, one, n)
        better = jnp.zeros(excess.shape, bool)
        for f, low in columns:
            limit = f.at[one].get(mode="fill", fill_value=jnp.inf)
            # a value not above the point's own value is not a limit in this objective
            better |= f[None] < jnp.where(limit > low, limit, -jnp.inf)[:, None]
        excess = jnp.where(better, excess, jnp.inf)
        found = found.at[:, step].set(one, mode="drop")
        return excess, found, count + left.astype(jnp.int32), step + 1

    none = jnp.full((rows.shape[0], room), n, jnp.int32)
    start = excess, none, jnp.zeros(rows.shape[0], jnp.int32), jnp.int32(0)
    _, found, count, _ = lax.while_loop(
        lambda s: jnp.any(jnp.isfinite(s[0])), remove_dominated_limits, start
    )
    return found, count


def _uncovered_volume(limits: Array, own: Array, top: Array, count: Array) -> Array:
    """Return the volume of the box [own, top] outside of the boxes [limits, top].

    Args:
        limits: [k, 4] not below `own`; unused ones are at `top`.
        own, top: [4].
        count: maximum number of limits in use.
    """
    k = limits.shape[0]
    x, y, z, w = limits.T
    layer = jnp.argsort(w)
    place = jnp.zeros(k, jnp.int32).at[layer].set(jnp.arange(k, dtype=jnp.int32))
    width, depth = (
        _interval_lengths(jnp.sort(x), own[0], top[0]),
        _interval_lengths(w[layer], own[3], top[3]),
    )
    steps = jnp.append(own[0], jnp.sort(x))[None]
    layers = jnp.arange(-1, k, dtype=jnp.int32)[:, None]
    order = jnp.argsort(z)
    rise = _interval_lengths(z[order], own[2], top[2])
    base = depth[:, None] * width[None]

    def sweep_limit(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        height, volume = state
        j = order[i]
        inside = (steps >= x[j]) & (layers >= place[j])
        height = jnp.where(inside, jnp.minimum(height, y[j] - own[1]), height)
        return height, volume + rise[i + 1] * jnp.sum(base * height)

    height = jnp.full((k + 1, k + 1), top[1] - own[1])
    return lax.fori_loop(0, count, sweep_limit, (height, rise[0] * jnp.sum(base * height)))[1]


def _interval_lengths(ascending: Array, low: Array, high: Array) -> Array:
    """Return the lengths of the intervals between low, the values and high. [k] -> [k + 1]."""
    return jnp.append(ascending, high) - jnp.append(low, ascending)
