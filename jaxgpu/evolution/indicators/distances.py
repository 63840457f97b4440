"""Indicators based on distances between a set and a reference set: IGD, GD, epsilon and spacing.

GD: Van Veldhuizen & Lamont (1998). IGD: Coello Coello & Reyes Sierra (2004),
doi:10.1007/978-3-540-24694-7_71. GD+, IGD+: Ishibuchi et al. (2015),
doi:10.1007/978-3-319-15892-1_8. Epsilon: Zitzler et al. (2003), doi:10.1109/TEVC.2003.810758.
Spacing: Schott (1995). All use mean distances (p = 1), as do the tables of the literature.

Pairs are formed in tiles: O(n r m) time, O(n + r) memory. A point with a NaN is infinitely far from
all others.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import Range, refuse

from .arguments import check_points, promote

_TILE = 128


@explain_errors
def igd(f: Array, front: Array) -> Array:
    """Return the mean distance of the front's points to the nearest of f. [n, m], [r, m] -> scalar.

    >>> float(igd(jnp.array([[0.0, 1.0]]), jnp.array([[0.0, 1.0], [0.0, 0.0], [3.0, 5.0]])))
    2.0
    """
    return jnp.mean(_min_distances(front, f, lambda front, f: _norm(f - front)))


@explain_errors
def igd_plus(f: Array, front: Array) -> Array:
    """Return IGD+: `igd` counting only how much worse f is than the front; weakly Pareto compliant.

    >>> float(igd_plus(jnp.array([[3.0, 0.0]]), jnp.array([[0.0, 1.0]])))
    3.0
    """
    return jnp.mean(_min_distances(front, f, lambda front, f: _norm(jnp.maximum(f - front, 0))))


@explain_errors
def gd(f: Array, front: Array) -> Array:
    """Return the mean distance of the points of f to the nearest point of the front.

    >>> float(gd(jnp.array([[0.0, 1.0], [4.0, 5.0]]), jnp.array([[0.0, 1.0], [0.0, 2.0]])))
    2.5
    """
    return jnp.mean(_min_distances(f, front, lambda f, front: _norm(f - front)))


@explain_errors
def gd_plus(f: Array, front: Array) -> Array:
    """Return GD+: `gd` counting only how much worse f is than the front.

    >>> float(gd_plus(jnp.array([[3.0, 0.0]]), jnp.array([[0.0, 1.0]])))
    3.0
    """
    return jnp.mean(_min_distances(f, front, lambda f, front: _norm(jnp.maximum(f - front, 0))))


@explain_errors
def epsilon(f: Array, front: Array) -> Array:
    """Return the smallest number to subtract from f so that it weakly dominates the front.

    >>> float(epsilon(jnp.array([[1.0, 2.0]]), jnp.array([[0.5, 2.5]])))
    0.5
    """
    return jnp.max(_min_distances(front, f, lambda front, f: jnp.max(f - front, axis=-1)))


@explain_errors
def epsilon_ratio(f: Array, front: Array) -> Array:
    """Return the smallest divisor of f so that it weakly dominates the front; all values > 0.

    >>> float(epsilon_ratio(jnp.array([[2.0, 4.0]]), jnp.array([[1.0, 3.0], [4.0, 2.0]])))
    2.0
    """
    f, front = (
        check_points("epsilon_ratio: f", f, nan=True),
        check_points("epsilon_ratio: front", front),
    )
    positive = Range(above=0, infinite=True)
    refuse("epsilon_ratio: f", jnp.where(jnp.isnan(f), jnp.inf, f), positive)
    refuse("epsilon_ratio: front", front, positive)
    return jnp.max(_min_distances(front, f, lambda front, f: jnp.max(f / front, axis=-1)))


@explain_errors
def spacing(f: Array) -> Array:
    """Return the standard deviation (n - 1) of taxicab distances to each point's nearest neighbor.

    >>> round(float(spacing(jnp.array([[0.0, 0.0], [1.0, 0.0], [4.0, 0.0]]))), 4)
    1.1547
    """
    f = check_points("spacing: f", f, nan=True)
    n = f.shape[0]
    if n < 2:
        raise ValueError("spacing: f has one point; it must have two or more")
    f = jnp.where(jnp.isnan(f), jnp.inf, f)

    def nearest_distance(i: Array) -> Array:
        gap = jnp.sum(jnp.abs(f - f[i][None]), axis=1)
        return jnp.min(jnp.where(jnp.arange(n) == i, jnp.inf, gap))

    return jnp.std(lax.map(nearest_distance, jnp.arange(n), batch_size=_TILE), ddof=1)


def _norm(d: Array) -> Array:
    square = jnp.sum(d * d, axis=-1)
    # a distance of zero has no direction; its gradient is set to zero instead of NaN
    return jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square)))


def _min_distances(a: Array, b: Array, distance: Callable[[Array, Array], Array]) -> Array:
    """Return the minimum distance from each point of `a` to all of `b`. [p, m], [q, m] -> [p]."""
    # NaN marks a failed point, which is infinitely far; in the front it leaves a gap
    a, b = promote(
        check_points("indicator: set", a, nan=True), check_points("indicator: set", b, nan=True)
    )
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"indicator: sets of shapes {a.shape} and {b.shape}; need [n, m], [r, m]")

    def min_distance(point: Array) -> Array:
        d = distance(point[None], b)
        return jnp.min(jnp.where(jnp.isnan(d), jnp.inf, d))

    return lax.map(min_distance, a, batch_size=_TILE)
