"""Evenly spread directions, and which of them each point is nearest to.

Das & Dennis (1998), doi:10.1137/S1052623496307510. In three objectives the nearest line of such
a lattice is found by rounding: the largest-remainder rounding of a point of the simplex, or one
of the six points a unit move away from it. That makes N log H work of N H. For other sets and
more objectives the lines are compared one by one in tiles, in O(N) memory.
"""

from itertools import combinations
from math import comb

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.pytree import number, pytree, size
from jaxgpu.ranges import Range, refuse

from ..problem import floats

_TILE = 128


@pytree
class Directions:
    """A set of directions into the positive orthant."""

    w: Array = number(least=0)  # [H, m] points of the simplex
    divisions: int = size(default=0, least=0)  # p of a single three-objective lattice, else 0


def das_dennis(objectives: int, *layers: int) -> Directions:
    """The lattice of the simplex with `layers[0]` divisions, and shrunken ones inside it.

    Layer i is pulled to the centre by 1 - i / len(layers) (Deb & Jain 2014, section IV-F: the
    inner of two layers is halved).

    >>> das_dennis(3, 12).w.shape, das_dennis(8, 3, 2).w.shape
    ((91, 3), (156, 8))
    """
    for given in (objectives, *layers):
        refuse("das_dennis: a number", given, Range(whole=True, one=True))
    if objectives < 2 or not layers or min(layers) < 1:
        raise ValueError(
            f"das_dennis: {objectives} objectives, layers {layers}; need >= 2 and >= 1 division"
        )
    parts = [
        1 / objectives + (1 - i / len(layers)) * (_simplex(objectives, p) / p - 1 / objectives)
        for i, p in enumerate(layers)
    ]
    rounding = layers[0] if objectives == 3 and len(layers) == 1 else 0
    w = np.concatenate(parts)
    return Directions(jnp.asarray(w, jnp.zeros(0).dtype), rounding)


def divisions_for(objectives: int, count: int) -> int:
    """Most divisions with which a lattice has at most `count` points.

    >>> divisions_for(3, 92)
    12
    """
    refuse("divisions_for: objectives", objectives, Range(least=2, whole=True, one=True))
    refuse("divisions_for: count", count, Range(least=1, whole=True, one=True))
    p = 1
    while comb(p + objectives, objectives - 1) <= count:
        p += 1
    return p


def layers_for(objectives: int, count: int = 160) -> tuple[int, ...]:
    """Divisions of a set of about `count` directions some of which are inside the simplex.

    A lattice with fewer divisions than objectives has points on the sides of the simplex alone:
    of each, some objective weighs nothing. From five objectives on there are two layers (Deb &
    Jain 2014, section IV-F), the inner one with as many divisions or one less.

    >>> layers_for(3, 120), layers_for(8), layers_for(15)
    ((14,), (3, 2), (2, 1))
    """
    refuse("layers_for: objectives", objectives, Range(least=2, whole=True, one=True))
    if objectives < 5:
        return (divisions_for(objectives, count),)
    points = lambda p: comb(p + objectives - 1, objectives - 1)
    best = (2, 1)
    for outer in range(2, divisions_for(objectives, max(count, objectives)) + 1):
        for inner in (outer - 1, outer):
            if points(outer) + points(inner) <= count:
                best = outer, inner
    return best


def _simplex(m: int, p: int) -> np.ndarray:
    """All vectors of m whole numbers that sum to p, in lexicographic order. [H, m]."""
    bars = np.array(list(combinations(range(p + m - 1), m - 1)))
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((-1, -1), (-1, p + m - 1)))
    edges[:, 0], edges[:, -1] = -1, p + m - 1
    return np.diff(edges, axis=1) - 1


def associate(directions: Directions, f: Array) -> tuple[Array, Array]:
    """The nearest line through the origin for each point, and the distance to it.

    Args:
        directions: H of them.
        f: [N, m], translated so that the ideal point is the origin; not negative.
    Returns:
        Index [N] int32 and perpendicular distance [N].

    >>> index, distance = associate(das_dennis(2, 1), jnp.array([[0.0, 2.0], [3.0, 1.0]]))
    >>> print(index, distance)
    [0 1] [0. 1.]
    """
    w, f = directions.w, floats("associate: f", f)
    if f.ndim != 2 or f.shape[1] != w.shape[1]:
        raise ValueError(f"associate: f has shape {list(f.shape)}; it must be [N, {w.shape[1]}]")
    refuse("associate: f", f, Range(least=0, infinite=True))
    unit = w / jnp.sqrt(jnp.sum(w * w, axis=1, keepdims=True))
    if directions.divisions:
        index = _by_rounding(unit, directions.divisions, f)
    else:
        index = lax.map(lambda x: _farthest(unit, x), f, batch_size=_TILE)
    nearest = unit[index]
    along = jnp.sum(f * nearest, axis=1, keepdims=True)
    off = f - along * nearest
    return index, jnp.sqrt(jnp.sum(off * off, axis=1))


def _farthest(unit: Array, x: Array) -> Array:
    """The direction along which x lies farthest: the line that is nearest."""
    return jnp.argmax(jnp.sum(unit * x[None], axis=1)).astype(jnp.int32)


def _by_rounding(unit: Array, p: int, f: Array) -> Array:
    total = jnp.sum(f, axis=1, keepdims=True)
    y = p * jnp.where(total > 0, f / jnp.where(total > 0, total, 1), 1 / 3)
    k = jnp.floor(y).astype(jnp.int32)
    # the units that are left go to the largest remainders; of three, 0, 1 or 2 are left
    rest = y - k.astype(y.dtype)
    left = p - jnp.sum(k, axis=1, keepdims=True, dtype=jnp.int32)
    # how many remainders come before each, by comparisons: XLA sorts short rows slowly
    a, b, c = rest[:, 0], rest[:, 1], rest[:, 2]
    one, other = jnp.stack([b > a, a >= b, a >= c], 1), jnp.stack([c > a, c > b, b >= c], 1)
    place = one.astype(jnp.int32) + other.astype(jnp.int32)
    k = k + (place < left).astype(jnp.int32)
    moves = [(0, 0, 0), (1, -1, 0), (-1, 1, 0), (1, 0, -1), (-1, 0, 1), (0, 1, -1), (0, -1, 1)]
    best, index = jnp.full(f.shape[0], -jnp.inf, f.dtype), jnp.zeros(f.shape[0], jnp.int32)
    for move in moves:
        j = k + jnp.array(move, jnp.int32)[None]
        valid = jnp.all((j >= 0) & (j <= p), axis=1)
        # rows with a smaller first number come before: a triangle less the triangle that is left
        rows = p - j[:, 0]
        at = jnp.where(valid, (p + 1) * (p + 2) // 2 - (rows + 1) * (rows + 2) // 2 + j[:, 1], 0)
        along = jnp.where(valid, jnp.sum(f * unit[at], axis=1), -jnp.inf)
        better = (along > best) | ((along == best) & (at < index))
        best, index = jnp.where(better, along, best), jnp.where(better, at, index)
    return index
