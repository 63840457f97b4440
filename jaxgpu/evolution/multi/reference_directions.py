"""Evenly spaced reference directions, and the nearest direction of each point.

Das & Dennis (1998), doi:10.1137/S1052623496307510. In three objectives the nearest line of such a
set is found by rounding: it is the largest-remainder rounding of a point of the simplex, or one of
the six points a unit move away from it. This reduces N H comparisons to N log H. For other sets and
more objectives, points are compared with all lines in tiles, in O(N) memory.
"""

import math
from itertools import combinations
from math import comb

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices import memory
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.inputs.ranges import Range, refuse

from ..problem import as_floats

TILE = 128  # points compared with all directions per batch


@pytree
class ReferenceDirections:
    """A set of directions into the positive orthant."""

    w: Array = number(least=0)  # [H, m] points of the simplex
    n_partitions: int = size(default=0, least=0)  # p of a single three-objective layer, else 0

    def unit(self) -> Array:
        """Return the directions normalised to length 1, [H, m]."""
        return unit_vectors(self.w)

    def check_objectives(self, name: str, objectives: int) -> None:
        """Raise if the directions have another number of objectives than the problem."""
        w = self.w
        if w.ndim != 2 or w.shape[1] != objectives:
            raise ValueError(
                f"{name}: ref_dirs of {w.shape[-1]} objectives; the problem has {objectives}; make "
                "them for as many"
            )


@explain_errors
def das_dennis(objectives: int, *n_partitions: int) -> ReferenceDirections:
    """Return the directions of Das & Dennis: an even partition of the simplex per layer.

    `n_partitions` has one number per layer. Layer i is shrunk to the center by 1 - i / layers
    (Deb & Jain 2014, section IV-F: the inner of two layers is halved).

    >>> das_dennis(3, 12).w.shape, das_dennis(8, 3, 2).w.shape
    ((91, 3), (156, 8))
    """
    for given in (objectives, *n_partitions):
        refuse("das_dennis: a number", given, Range(whole=True, one=True))
    if objectives < 2 or not n_partitions or min(n_partitions) < 1:
        raise ValueError(
            f"das_dennis: {objectives} objectives, n_partitions={n_partitions}; need at least 2 "
            "objectives and at least 1 partition in each layer"
        )
    for p in n_partitions:  # the memory of temporary tuples of Python integers
        count = math.lgamma(objectives + p) - math.lgamma(p + 1) - math.lgamma(objectives)
        need = int(math.exp(min(count, 80.0))) * (100 + 60 * objectives)
        memory.check_size("das_dennis", min(need, 2**63 - 1), "use fewer partitions")
    layers = len(n_partitions)
    parts = [
        1 / objectives + (1 - i / layers) * (_simplex(objectives, p) / p - 1 / objectives)
        for i, p in enumerate(n_partitions)
    ]
    rounding = n_partitions[0] if objectives == 3 and layers == 1 else 0
    w = np.concatenate(parts)
    return ReferenceDirections(jnp.asarray(w, jnp.zeros(0).dtype), rounding)


@explain_errors
def partitions_for(objectives: int, count: int) -> int:
    """Return the most partitions with which one layer has at most `count` directions.

    >>> partitions_for(3, 92)
    12
    """
    refuse("partitions_for: objectives", objectives, Range(least=2, whole=True, one=True))
    refuse("partitions_for: count", count, Range(least=1, whole=True, one=True))
    p = 1
    while comb(p + objectives, objectives - 1) <= count:
        p += 1
    return p


@explain_errors
def layers_for(objectives: int, count: int = 160) -> tuple[int, ...]:
    """Return the partitions of layers with about `count` directions, some inside the simplex.

    A layer with fewer partitions than objectives has points only on the boundary of the simplex:
    each of its directions gives some objective weight 0. From five objectives on there are two
    layers (Deb & Jain 2014, section IV-F), the inner one with as many partitions or one less.

    >>> layers_for(3, 120), layers_for(8), layers_for(15)
    ((14,), (3, 2), (2, 1))
    """
    refuse("layers_for: objectives", objectives, Range(least=2, whole=True, one=True))
    if objectives < 5:
        return (partitions_for(objectives, count),)
    points = lambda p: comb(p + objectives - 1, objectives - 1)
    best = (2, 1)
    for outer in range(2, partitions_for(objectives, max(count, objectives)) + 1):
        for inner in (outer - 1, outer):
            if points(outer) + points(inner) <= count:
                best = outer, inner
    return best


def _simplex(m: int, p: int) -> np.ndarray:
    """Return all vectors of m integers >= 0 with sum p, in lexicographic order. [H, m]."""
    bars = np.array(list(combinations(range(p + m - 1), m - 1)))
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((-1, -1), (-1, p + m - 1)))
    edges[:, 0], edges[:, -1] = -1, p + m - 1
    return np.diff(edges, axis=1) - 1


def unit_vectors(w: Array) -> Array:
    """Return the rows of w [H, m] divided by their lengths."""
    return w / jnp.sqrt(jnp.sum(w * w, axis=1, keepdims=True))


def nearest_line(unit: Array, f: Array) -> Array:
    """Return the nearest line of each point, along which its projection is longest. [N] int32.

    Args:
        unit: directions of length 1, [H, m].
        f: points [N, m], compared with all directions tile by tile, in O(N) memory.
    """

    def nearest_index(point: Array) -> Array:
        return jnp.argmax(jnp.sum(unit * point[None], axis=1)).astype(jnp.int32)

    return lax.map(nearest_index, f, batch_size=TILE)


@explain_errors
def associate(ref_dirs: ReferenceDirections, f: Array) -> tuple[Array, Array]:
    """Return the nearest line through the origin of each point, and the distance to it.

    Args:
        ref_dirs: H directions.
        f: [N, m], translated so that the ideal point is the origin; not negative.
    Returns:
        Index [N] int32 and perpendicular distance [N].

    >>> index, distance = associate(das_dennis(2, 1), jnp.array([[0.0, 2.0], [3.0, 1.0]]))
    >>> print(index, distance)
    [0 1] [0. 1.]
    """
    unit, f = ref_dirs.unit(), as_floats("associate: f", f)
    if not unit.size:
        raise ValueError(f"associate: ref_dirs.w has shape {list(unit.shape)}; it must be [H, m]")
    m = unit.shape[1]
    if f.ndim != 2 or f.shape[1] != m:
        raise ValueError(f"associate: f has shape {list(f.shape)}; it must be [N, {m}]")
    refuse("associate: f", f, Range(least=0, infinite=True))
    p = ref_dirs.n_partitions
    index = _nearest_by_rounding(unit, p, f) if p else nearest_line(unit, f)
    line = unit[index]
    along = jnp.sum(f * line, axis=1, keepdims=True)
    off = f - along * line
    return index, jnp.sqrt(jnp.sum(off * off, axis=1))


def _nearest_by_rounding(unit: Array, p: int, f: Array) -> Array:
    total = jnp.sum(f, axis=1, keepdims=True)
    y = p * jnp.where(total > 0, f / jnp.where(total > 0, total, 1), 1 / 3)
    k = jnp.floor(y).astype(jnp.int32)
    # the remaining units (0, 1 or 2 of three) go to the largest remainders
    rest = y - k.astype(y.dtype)
    left = p - jnp.sum(k, axis=1, keepdims=True, dtype=jnp.int32)
    # rank the remainders by comparisons, because XLA sorts short rows slowly
    a, b, c = rest[:, 0], rest[:, 1], rest[:, 2]
    one, other = jnp.stack([b > a, a >= b, a >= c], 1), jnp.stack([c > a, c > b, b >= c], 1)
    place = one.astype(jnp.int32) + other.astype(jnp.int32)
    k = k + (place < left).astype(jnp.int32)
    moves = [(0, 0, 0), (1, -1, 0), (-1, 1, 0), (1, 0, -1), (-1, 0, 1), (0, 1, -1), (0, -1, 1)]
    best, index = jnp.full(f.shape[0], -jnp.inf, f.dtype), jnp.zeros(f.shape[0], jnp.int32)
    for move in moves:
        j = k + jnp.array(move, jnp.int32)[None]
        valid = jnp.all((j >= 0) & (j <= p), axis=1)
        # the index counts rows with a smaller first number: a triangle minus the remaining one
        rows = p - j[:, 0]
        at = jnp.where(valid, (p + 1) * (p + 2) // 2 - (rows + 1) * (rows + 2) // 2 + j[:, 1], 0)
        along = jnp.where(valid, jnp.sum(f * unit[at], axis=1), -jnp.inf)
        wins = (along > best) | ((along == best) & (at < index))
        best, index = jnp.where(wins, along, best), jnp.where(wins, at, index)
    return index
