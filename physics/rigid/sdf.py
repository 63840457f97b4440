"""Signed distances to simple surfaces: negative inside, in m, of points [K, 3, ...].

Place a surface by moving the points: `box(p - centre, half)`. All are exact distances outside;
formulas after Quilez, which are elementary geometry.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array


def half_space(p: Array, normal: Any, height: Any = 0.0) -> Array:
    """Below the plane normal . p = height, `normal` of unit length.

    >>> half_space(jnp.array([[1.0, 2.0, 3.0]]), (0.0, 0.0, 1.0), 0.5)
    Array([2.5], dtype=float32)
    """
    return p[:, 0] * normal[0] + p[:, 1] * normal[1] + p[:, 2] * normal[2] - height


def sphere(p: Array, radius: Any) -> Array:
    """A ball about the origin."""
    return _norm(p[:, 0], p[:, 1], p[:, 2]) - radius


def box(p: Array, half: Any) -> Array:
    """A box about the origin with the half widths `half` (x, y, z)."""
    x, y, z = (jnp.abs(p[:, i]) - half[i] for i in range(3))
    outside = _norm(jnp.maximum(x, 0), jnp.maximum(y, 0), jnp.maximum(z, 0))
    return outside + jnp.minimum(jnp.maximum(x, jnp.maximum(y, z)), 0)


def capsule(p: Array, half: Any, radius: Any) -> Array:
    """All within `radius` of the segment from -half to half on the z axis."""
    z = p[:, 2]
    return _norm(p[:, 0], p[:, 1], z - jnp.clip(z, -half, half)) - radius


def torus(p: Array, ring: Any, tube: Any) -> Array:
    """A ring of radius `ring` in the xy plane, the tube of radius `tube` thick."""
    return _norm(_norm(p[:, 0], p[:, 1]) - ring, p[:, 2]) - tube


def plate_with_hole(p: Array, radius: Any, thickness: Any) -> Array:
    """An endless plate, its top at z = 0, with a round hole through it along the z axis."""
    wall = radius - _norm(p[:, 0], p[:, 1])
    top, bottom = p[:, 2], -thickness - p[:, 2]
    face = jnp.maximum(top, bottom)
    outside = _norm(jnp.maximum(wall, 0), jnp.maximum(face, 0))
    return outside + jnp.minimum(jnp.maximum(wall, face), 0)


def _norm(*parts: Array) -> Array:
    """Euclidean norm whose derivative at zero is zero, not nan."""
    square = sum(x * x for x in parts[1:]) + parts[0] * parts[0]
    away = square > 0
    return jnp.where(away, jnp.sqrt(jnp.where(away, square, 1.0)), 0.0)
