"""Acceleration, jerk and snap of pairs of points, summed without storing one value a pair.

Nitadori & Makino (2008), doi:10.1016/j.newast.2008.01.010, eqs. 8 to 12. The snap depends on the
accelerations of both points, which therefore are arguments. One pass as in `pairs`: 67 operations
and an inverse square root a pair, against 38 of acceleration and jerk.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import dot

from .pairs import inverse_powers
from .sums import summed


def pull(points: Array, sources: Array, m: Array, softening: Array | float = 0.0) -> Array:
    """Acceleration, jerk and snap [9, K] at points by N sources, with G = 1.

    Args:
        points: positions, velocities and accelerations [9, K].
        sources: positions, velocities and accelerations [9, N].
        m: masses of the sources [N].
        softening: length at which the pull is softened; 0 for none.

    A source at zero distance (the point itself) pulls with nothing. Forward mode runs through;
    reverse mode does not.

    >>> source = jnp.array([[2.0, 0, 0, 0, 1, 0, 0, 0, 3]]).T
    >>> pull(jnp.zeros((9, 1)), source, jnp.array([4.0]))[:, 0].tolist()
    [1.0, 0.0, 0.0, 0.0, 0.5, 0.0, -0.75, 0.0, 1.5]
    """
    eps2 = jnp.asarray(softening, points.dtype) ** 2

    def terms(t: list[Array], s: list[Array]) -> list[Array]:
        d, w, b = ([q - p for p, q in zip(t[k : k + 3], s[k : k + 3])] for k in (0, 3, 6))
        r2 = dot(d, d) + eps2
        u2, u3 = inverse_powers(r2)
        p = s[9] * u3
        alpha = dot(d, w) * u2
        beta = (dot(w, w) + dot(d, b)) * u2 + alpha * alpha
        a = [p * c for c in d]
        j = [p * c - 3 * alpha * e for c, e in zip(w, a)]
        snap = [p * c - 6 * alpha * e - 3 * beta * f for c, e, f in zip(b, j, a)]
        return a + j + snap

    return summed(terms, [points], [sources, m], 9)
