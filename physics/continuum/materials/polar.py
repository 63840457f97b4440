"""Stretch of the polar decomposition by invariants: no principal frame, exact derivatives.

F = V R with V symmetric, so V^2 = b = F F^T. V has the principal stretches s_i of F (the smallest
is negative if det F is) and by Cayley and Hamilton V^3 - i1 V^2 + i2 V - J I = 0, which gives

    V = (-b^2 + (i1^2 - i2) b + i1 J I) / q,   q = i1 i2 - J = (s_1 + s_2)(s_2 + s_3)(s_3 + s_1).

i2 = (i1^2 - tr b) / 2, and i1 = s_1 + s_2 + s_3 is the largest root of a quartic (`_stretch_trace`)
whose four roots are real: s_1 + s_2 + s_3, s_1 - s_2 - s_3 and so on. That root remains simple
where stretches coincide, as at rest. After Hoger & Carlson (1984), doi:10.1090/qam/724060, and
Franca (1989), doi:10.1016/0898-1221(89)90125-1. Plane strain only needs V = (b + J I) / (s_1 +
s_2).
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.geometry.vectors import Mat, add, cofactor, det, gram, matrix, scale, shift, trace

# Laguerre iterations. Largest error of i1 after each, for stretches from 0.1 to 10: 1e-3,
# 1e-9, 1e-15; with a negative last one, up to 0.7 times the next: 0.1, 1e-3, 1e-8, 1e-15.
ITERATIONS = 4


def stretch(f: Mat) -> tuple[Mat, Mat, Array]:
    """Return V, b = V^2 and J = det F of F = V R.

    Args:
        f: 2x2 or 3x3 matrix.
    Returns:
        V, b and J. The error of V, relative to the largest stretch, is 1e-6 in float32 and 2e-14 in
        float64, if stretches are within a factor of ten of one another. |V_ij| <= |F| everywhere;
        where two stretches are nearly opposite V jumps, and may be any value within that bound.
    Differentiable in any mode and to any order; finite in float32 for |F| from 1e-2 to 1e2.

    >>> one = jnp.ones(())
    >>> v, _, _ = stretch(((0 * one, -2 * one), (one, 0 * one)))  # a quarter turn, then (2, 1)
    >>> [float(a) for row in v for a in row]
    [2.0, 0.0, 0.0, 1.0]
    """
    b, j = gram(f), det(f)
    if len(f) == 2:
        square = trace(b)
        total = jnp.sqrt(jnp.maximum(square + 2 * j, 1e-12 * square + safe_tiny(j.dtype)))
        return scale(1 / total, shift(b, j)), b, j
    first = trace(b)
    i1 = _stretch_trace(first, trace(cofactor(b)), j)
    i2 = (i1 * i1 - first) / 2
    share = 1 / _stretch_product(i1, i2, j)
    mixed = add(scale(-share, gram(b)), scale(share * (i1 * i1 - i2), b))
    return _clip_entries(shift(mixed, share * i1 * j), jnp.sqrt(first)), b, j


def _clip_entries(v: Mat, size: Array) -> Mat:
    """Clip entries to |F|, which only rounding near opposite stretches would exceed."""
    return matrix([jnp.clip(x, -size, size) for x in row] for row in v)


@jax.custom_jvp
def _stretch_trace(first: Array, second: Array, j: Array) -> Array:
    """Return i1, the largest root of (x^2 - first)^2 / 4 - 2 J x - second.

    first and second are invariants of b. Laguerre's iteration descends to it from an upper bound
    (i2^2 <= 3 second), which is i1 itself at rest and where one stretch dominates; it never goes
    below sqrt(first / 3).
    """
    x, least = jnp.sqrt(first + 2 * jnp.sqrt(3 * jnp.maximum(second, 0))), jnp.sqrt(first / 3)
    for _ in range(ITERATIONS):
        y = x * x - first
        value, slope, bend = y * y / 4 - 2 * j * x - second, y * x - 2 * j, 3 * x * x - first
        root = jnp.sqrt(jnp.maximum(9 * slope * slope - 12 * value * bend, 0))
        x = jnp.maximum(x - 4 * jnp.maximum(value, 0) / (slope + root + safe_tiny(x.dtype)), least)
    return x


@_stretch_trace.defjvp
def _stretch_trace_jvp(point, direction):
    first, _, j = point
    x = _stretch_trace(*point)
    i2 = (x * x - first) / 2
    dfirst, dsecond, dj = direction
    return x, (i2 * dfirst + dsecond + 2 * x * dj) / (2 * _stretch_product(x, i2, j))


def _stretch_product(i1: Array, i2: Array, j: Array) -> Array:
    """Return q, bounded away from zero: it vanishes only where f inverts."""
    return jnp.maximum(i1 * i2 - j, 1e-6 * i1 * i1 * i1 + safe_tiny(j.dtype))
