"""Kepler's equation in universal variables: Stumpff functions and an iterative solver.

With s the integral of dt / r, the time and the distance of two bodies are linear in the Stumpff
functions of beta s^2 for every conic. The equation time(s) = dt is solved by the method of
Laguerre as used by Conway (1986), doi:10.1007/BF01230852. It converges from any start. From a
pericentre, however, the first step overshoots by 1 / (1 - e), so shrinking bounds limit the steps.

`kepler`, `ks` and `elements` share the iteration and supply their own `flight`: `ks` must pass
through collisions, where the others divide by the distance. There are two versions of the Stumpff
functions. `stumpff` is exact to rounding for any argument. `stumpff_doubled` calls no
transcendental function and costs a fifth in vectorised code. It is accurate to 1e-13 for small
arguments, as in the steps of a regularised pair.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

_SERIES = 9  # series terms of a Stumpff function up to |z| = 1: the tenth is below rounding
_HALVINGS, _TERMS = 4, 6  # halvings of the angle, and series terms for the result
_DOUBLED = 200.0  # maximum argument for the series with doubling

# s -> (time since the start, distance, derivative of the distance by s), all [...]
type Flight = Callable[[Array], tuple[Array, Array, Array]]
# (s, the last step, the error of the time at s) -> mask [...] of converged lanes
type IsConverged = Callable[[Array, Array, Array], Array]


def solve(
    flight: Flight, start: Array, dt: Array, most: Array, settled: IsConverged, rounds: int
) -> Array:
    """Return the `s` [...] at which the time is `dt` [...], with the sign of dt and |s| <= `most`.

    Args:
        flight: returns time, distance and its derivative; the time increases with s.
        start: initial guess; it is clipped to the bounds.
        dt: time, of either sign.
        most: an upper bound of |s|, above the solution.
        settled: returns the mask of converged lanes; the iteration ends when all have converged.
        rounds: maximum number of iterations.

    Derivatives do not pass through the iteration; a Newton step in `kepler` carries them.

    >>> line = lambda s: (2 * s, 2 + 0 * s, 0 * s)
    >>> near = lambda s, step, error: jnp.abs(step) <= 1e-6
    >>> float(solve(line, jnp.float32(0), jnp.float32(3), jnp.float32(9), near, 20))
    1.5
    """

    def is_unfinished(carry: tuple[Array, ...]) -> Array:
        return carry[4]

    def laguerre(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        k, s, low, high, _ = carry
        time, distance, bend = flight(s)
        error = time - dt
        # the bounds always enclose the solution, because the time increases with s
        low, high = jnp.where(error < 0, s, low), jnp.where(error > 0, s, high)
        root = jnp.sqrt(jnp.abs(16 * distance * distance - 20 * error * bend))
        leap = s - 5 * error / (distance + root)
        middle = (low + high) / 2
        nearer = jnp.where(jnp.isfinite(middle), middle, s / 2)  # s / 2 if sinh overflowed
        # nan fails both comparisons, so an invalid Laguerre step also bisects the interval
        after = jnp.where((low <= leap) & (leap <= high), leap, nearer)
        again = jnp.any(~settled(after, s - after, error)) & (k + 1 < rounds)
        return k + 1, after, low, high, again

    low, high = jnp.where(dt < 0, -most, 0), jnp.where(dt > 0, most, 0)
    carry = jnp.int32(0), jnp.clip(start, low, high), low, high, jnp.bool_(True)
    return lax.while_loop(is_unfinished, laguerre, carry)[1]


def stumpff(z: Array) -> tuple[Array, Array]:
    """Return c2 = (1 - cos sqrt z) / z and c3 = (sqrt z - sin sqrt z) / z^(3/2) for any z.

    >>> c2, c3 = stumpff(jnp.zeros(()))
    >>> float(c2), round(float(6 * c3), 6)
    (0.5, 1.0)
    """
    near, closed = jnp.abs(z) < 1, z > 0
    small = jnp.where(near, z, 0)
    series = []
    for first in (2, 3):
        term = 1.0
        for k in range(_SERIES, 0, -1):
            term = 1 - small * term / ((first + 2 * k) * (first + 2 * k - 1))
        series.append(term / first / (first - 1))
    # branches that are not selected get the argument 1, so that their derivatives are not nan
    root = jnp.sqrt(jnp.where(near, 1, jnp.abs(z)))
    half = jnp.where(closed, jnp.sin(root / 2), jnp.sinh(jnp.where(closed, 1, root / 2)))
    whole = jnp.where(closed, jnp.sin(root), jnp.sinh(jnp.where(closed, 1, root)))
    c2 = 2 * half * half / (root * root)
    c3 = jnp.where(closed, root - whole, whole - root) / (root * root * root)
    return jnp.where(near, series[0], c2), jnp.where(near, series[1], c3)


def stumpff_doubled(x: Array) -> tuple[Array, Array, Array, Array]:
    """Return the Stumpff functions c_k(x) = sum_n (-x)^n / (2 n + k)! for k = 0 to 3.

    Uses the series for x / 4^4 and doubling of the angle, to a relative 1e-13 for |x| up to 40, and
    exponentials below -200. Returns nan above 200, more than two revolutions of an ellipse.

    >>> round(float(stumpff_doubled(jnp.array(1.0))[0]), 4)
    0.5403
    """
    whole, x = x, x / 4**_HALVINGS
    a, b = jnp.ones_like(x), jnp.ones_like(x)
    for n in range(_TERMS, 0, -1):
        a = 1 - x * a / ((2 * n + 2) * (2 * n + 3))
        b = 1 - x * b / ((2 * n + 1) * (2 * n + 2))
    c3, c2 = a / 6, b / 2
    for _ in range(_HALVINGS):
        c0, c1 = 1 - x * c2, 1 - x * c3
        c2, c3, x = c1 * c1 / 2, (c2 + c0 * c3) / 4, 4 * x
    # on a distant part of a hyperbola, the series for doubling would start too far from 0
    open_ = whole < -_DOUBLED
    q = jnp.sqrt(jnp.where(open_, -whole, 1))
    rise, fall = jnp.exp(q), jnp.exp(-q)
    cosh, sinh = (rise + fall) / 2, (rise - fall) / (2 * q)
    beyond = cosh, sinh, (cosh - 1) / (q * q), (sinh - 1) / (q * q)
    near = 1 - x * c2, 1 - x * c3, c2, c3
    near = (jnp.where(whole > _DOUBLED, jnp.nan, c) for c in near)
    c0, c1, c2, c3 = (jnp.where(open_, b, a) for a, b in zip(near, beyond))
    return c0, c1, c2, c3
