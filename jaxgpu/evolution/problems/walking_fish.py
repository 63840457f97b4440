"""WFG1-9: fronts of many shapes behind biased, deceptive, multi-modal and linked variables.

Huband, Hingston, Barone & While (2006), doi:10.1109/TEVC.2005.861417. A point is scaled to
[0, 1]^D, transformed, reduced to one distance and m - 1 positions, and mapped to a front; the
letters are the paper's.

The transformations are written piecewise, so that nothing cancels and float32 keeps its digits. The
distance of a variable from its optimum is computed from x and the optimum as a sum of two floats: a
float32 value is exact for that float32 point, not for a nearby one. In WFG1 the difference is
large: y^0.02 of the rounding of 0.35 is about 0.7 in float32 (0.5 in float64), so it cannot be
solved to less unless the optimum is a float.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors

from ..problem import Box, Problem, check_integers
from .float_pairs import subtract
from .front_shapes import front_products, quarter_sine, triangle

_BEST = 0.35  # optimum of every distance variable, except where it is shifted in WFG7-9


@explain_errors
def wfg(number: int, objectives: int = 3, positions: int | None = None, distances: int = 20):
    """Return one of the nine problems; variable i is in [0, 2 i].

    Args:
        number: 1 to 9.
        objectives: m, at least 2.
        positions: k, a multiple of m - 1; 2 (m - 1) by default, but 4 for two objectives.
        distances: l, even in WFG2 and WFG3.
    Returns:
        Problem. The front of WFG4-9 is (f_j / 2 j) on the unit sphere.

    >>> f = wfg(4).function(0.35 * wfg(4).box.upper)
    >>> float(jnp.sum((f / jnp.array([2.0, 4.0, 6.0])) ** 2).round(5))
    1.0
    """
    check_integers("wfg", number=number, objectives=objectives, distances=distances)
    m = objectives
    k = positions if positions is not None else 4 if m == 2 else 2 * (m - 1)
    check_integers("wfg", positions=k)
    if not 1 <= number <= 9 or m < 2 or k < 1 or k % (m - 1) or distances < 1:
        raise ValueError(
            f"wfg: number={number}, objectives={m}, positions={k}, distances={distances}; need 1 "
            "to 9, at least 2, a multiple of objectives - 1, and at least 1"
        )
    if number in (2, 3) and distances % 2:
        raise ValueError(f"wfg: distances={distances}; WFG{number} needs an even number")
    upper = 2.0 * np.arange(1, k + distances + 1)
    reduced, shape = _STAGES[number]
    centred = np.where(np.arange(m - 1) > 0, 0.0 if number == 3 else 1.0, 1.0)

    def function(x: Array) -> Array:
        width = jnp.asarray(upper, x.dtype)
        y = jnp.clip(x / width, 0, 1)
        d = jnp.clip(subtract(x, _BEST * upper) / width, -_BEST, 1 - _BEST)
        t = reduced(y, d, k, m)
        far = t[-1]
        p = jnp.maximum(far, jnp.asarray(centred, x.dtype)) * (t[:-1] - 0.5) + 0.5
        return far + jnp.asarray(2.0 * np.arange(1, m + 1), x.dtype) * shape(p)

    top = jnp.asarray(upper, float)
    return Problem(Box(jnp.zeros_like(top), top), function, m)


def _reduce_groups(y: Array, k: int, m: int, reduce: Callable[[Array], Array]) -> Array:
    """Reduce m - 1 groups of the k positions, and the distances. [D] -> [m]."""
    return jnp.append(jax.vmap(reduce)(y[:k].reshape(m - 1, -1)), reduce(y[k:]))


def _r_nonsep(y: Array) -> Array:
    """Apply r_nonsep of full degree: the mean, plus the differences between the variables."""
    n = y.shape[0]
    half = -(-n // 2)
    apart = jnp.sum(jnp.abs(y[:, None] - y[None]))
    return (jnp.sum(y) + apart) / (half * (1 + 2 * n - 2 * half))


def _s_linear(d: Array) -> Array:
    """Apply s_linear: 0 at 0.35, given the distance d from there."""
    return jnp.where(d < 0, -d / _BEST, d / (1 - _BEST))


def _s_multi(d: Array, hills: int, height: float) -> Array:
    """Apply s_multi: hills about the optimum at 0.35, given the distance d from there."""
    t = _s_linear(d) / 2
    waves = jnp.sin((2 * hills + 1) * jnp.pi * t) ** 2
    return (2 * waves + 4 * height * t * t) / (height + 2)


def _s_decept(d: Array) -> Array:
    """Apply s_decept for d = y - 0.35: a narrow optimum, and slopes to y = 0, 1, worth 0.05."""
    reach, worth = 0.001, 0.05
    left = 1 + (d + reach) * (1 - worth) / (_BEST - reach)
    right = 1 - (d - reach) * (1 - worth) / (1 - _BEST - reach)
    return jnp.where(d < -reach, left, jnp.where(d > reach, right, jnp.abs(d) / reach))


def _b_flat(y: Array) -> Array:
    """Apply b_flat: constant 0.8 from 0.75 to 0.85."""
    low, high, value = 0.75, 0.85, 0.8
    below, above = value * y / low, 1 - (1 - value) * (1 - y) / (1 - high)
    return jnp.where(y < low, below, jnp.where(y > high, above, value))


def _b_param(y: Array, u: Array) -> Array:
    """Apply b_param: y to a power from 0.02 over 1 to 50, set by the mean u of other variables."""
    return y ** jnp.where(u > 0.5, 1 + 49 * (2 * u - 1), 0.02 + 1.96 * u)


def _preceding_means(y: Array) -> Array:
    """Return the mean of the variables before each; 0 for the first."""
    count = np.arange(y.shape[0])
    total = jnp.cumsum(y) - y
    return total / jnp.asarray(np.maximum(count, 1), y.dtype)


def _reduce_wfg1(y: Array, d: Array, k: int, m: int) -> Array:
    y = jnp.append(y[:k], _b_flat(_s_linear(d[k:]))) ** 0.02
    w = jnp.asarray(2.0 * np.arange(1, y.shape[0] + 1), y.dtype)
    mean = lambda part: jnp.sum(part[0] * part[1]) / jnp.sum(part[1])
    head = y[:k].reshape(m - 1, -1), w[:k].reshape(m - 1, -1)
    return jnp.append(jax.vmap(mean)(head), mean((y[k:], w[k:])))


def _reduce_wfg2_and_3(y: Array, d: Array, k: int, m: int) -> Array:
    a, b = _s_linear(d[k:]).reshape(-1, 2).T
    return _reduce_groups(jnp.append(y[:k], (a + b + 2 * jnp.abs(a - b)) / 3), k, m, jnp.mean)


def _reduce_wfg6(y: Array, d: Array, k: int, m: int) -> Array:
    return _reduce_groups(jnp.append(y[:k], _s_linear(d[k:])), k, m, _r_nonsep)


def _reduce_wfg7(y: Array, d: Array, k: int, m: int) -> Array:
    y = _b_param(y, _preceding_means(y[::-1])[::-1])
    return _reduce_groups(jnp.append(y[:k], _s_linear(d[k:])), k, m, jnp.mean)


def _reduce_wfg8(y: Array, d: Array, k: int, m: int) -> Array:
    d = _b_param(y, _preceding_means(y)) - _BEST
    return _reduce_groups(jnp.append(y[:k], _s_linear(d[k:])), k, m, jnp.mean)


def _reduce_wfg9(y: Array, d: Array, k: int, m: int) -> Array:
    bent = _b_param(y, _preceding_means(y[::-1])[::-1]) - _BEST
    d = jnp.append(bent[:-1], d[-1])
    return _reduce_groups(jnp.append(_s_decept(d[:k]), _s_multi(d[k:], 30, 95.0)), k, m, _r_nonsep)


def _concave_front(p: Array) -> Array:
    return front_products(quarter_sine(p), quarter_sine(1 - p))


def _convex_front(p: Array) -> Array:
    """Return the convex front: 1 - cos and 1 - sin, of quarter turns."""
    return front_products(2 * quarter_sine(p / 2) ** 2, 2 * quarter_sine((1 - p) / 2) ** 2)


def _mixed_front(p: Array) -> Array:
    turn = 10 * jnp.pi
    return _convex_front(p).at[-1].set(1 - p[0] + jnp.sin(turn * p[0]) / turn)


def _disconnected_front(p: Array) -> Array:
    return _convex_front(p).at[-1].set(1 - p[0] * jnp.cos(5 * jnp.pi * p[0]) ** 2)


# reductions map y in [0, 1]^D, y - 0.35, k and m to m - 1 positions and a distance
_STAGES: dict[int, tuple[Callable[[Array, Array, int, int], Array], Callable[[Array], Array]]] = {
    1: (_reduce_wfg1, _mixed_front),
    2: (_reduce_wfg2_and_3, _disconnected_front),
    3: (_reduce_wfg2_and_3, triangle),
    4: (lambda y, d, k, m: _reduce_groups(_s_multi(d, 30, 10.0), k, m, jnp.mean), _concave_front),
    5: (lambda y, d, k, m: _reduce_groups(_s_decept(d), k, m, jnp.mean), _concave_front),
    6: (_reduce_wfg6, _concave_front),
    7: (_reduce_wfg7, _concave_front),
    8: (_reduce_wfg8, _concave_front),
    9: (_reduce_wfg9, _concave_front),
}
