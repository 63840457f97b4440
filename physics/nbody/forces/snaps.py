"""Acceleration, jerk and snap of pairs of points, summed without storing a value per pair.

Nitadori & Makino (2008), doi:10.1016/j.newast.2008.01.010, eqs. 8 to 12. The snap depends on the
accelerations of both points, which are therefore arguments. One pass as in `pairs`: 67 operations
and an inverse square root per pair, compared with 38 for acceleration and jerk.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import dot

from .pair_sums import check_rows, pair_sum


def pull(points: Any, sources: Any, m: Array, softening: Array | float = 0.0) -> Array:
    """Return acceleration, jerk and snap [9, K] at points due to N sources, with G = 1.

    Args:
        points: positions, velocities and accelerations [9, K], or a tuple of their nine rows [K].
        sources: positions, velocities and accelerations [9, N], or their rows.
        m: masses of the sources [N].
        softening: softening length; 0 for none.

    A source at zero distance (the point itself) has no pull. Supports forward-mode differentiation,
    but not reverse mode.

    Raises:
        ValueError: points, sources or masses of another shape.

    >>> source = jnp.array([[2.0, 0, 0, 0, 1, 0, 0, 0, 3]]).T
    >>> pull(jnp.zeros((9, 1)), source, jnp.array([4.0]))[:, 0].tolist()
    [1.0, 0.0, 0.0, 0.0, 0.5, 0.0, -0.75, 0.0, 1.5]
    """
    check_rows("snaps.pull", 9, points, sources, m)
    eps2 = jnp.asarray(softening, m.dtype) ** 2
    return _pull_sum(jax.tree.leaves(points), [*jax.tree.leaves(sources), m], eps2[None])


def _pull_terms(t: list[Array], s: list[Array], c: list[Array], powers: Callable) -> list[Array]:
    d, w, b = ([q - p for p, q in zip(t[k : k + 3], s[k : k + 3])] for k in (0, 3, 6))
    u2, u3 = powers(dot(d, d) + c[0])
    p = s[9] * u3
    alpha = dot(d, w) * u2
    beta = (dot(w, w) + dot(d, b)) * u2 + alpha * alpha
    a = [p * e for e in d]
    j = [p * e - 3 * alpha * f for e, f in zip(w, a)]
    snap = [p * e - 6 * alpha * f - 3 * beta * g for e, f, g in zip(b, j, a)]
    return a + j + snap


_pull_sum = pair_sum("pair_snap", _pull_terms, 9, apart=9)
