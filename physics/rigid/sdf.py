"""Signed distances to simple surfaces: negative inside, in m, of points [K, 3, ...].

Place a surface by moving the points: `box(p - centre, half)`. All are exact distances outside;
formulas after Quilez, which are elementary geometry.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.ranges import numbers


def half_space(p: Array, normal: Any, height: Any = 0.0) -> Array:
    """Below the plane normal . p = height, `normal` of unit length.

    >>> half_space(jnp.array([[1.0, 2.0, 3.0]]), (0.0, 0.0, 1.0), 0.5)
    Array([2.5], dtype=float32)
    """
    p = _points("half_space", p)
    if not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(normal)):
        normal = numbers("half_space: normal", normal, (3,))
        length = np.linalg.norm(np.asarray(normal, float))
        if abs(length - 1) > 1e-3:
            raise ValueError(
                f"half_space: normal has the length {length:g}; it must be of unit length; divide "
                "by it"
            )
    height = _size("half_space: height", height)
    return p[:, 0] * normal[0] + p[:, 1] * normal[1] + p[:, 2] * normal[2] - height


def sphere(p: Array, radius: Any) -> Array:
    """A ball about the origin."""
    p, radius = _points("sphere", p), _size("sphere: radius", radius, least=0)
    return _norm(p[:, 0], p[:, 1], p[:, 2]) - radius


def box(p: Array, half: Any) -> Array:
    """A box about the origin with the half widths `half` (x, y, z)."""
    p, half = _points("box", p), _sizes("box: half", half)
    x, y, z = (jnp.abs(p[:, i]) - half[i] for i in range(3))
    outside = _norm(jnp.maximum(x, 0), jnp.maximum(y, 0), jnp.maximum(z, 0))
    return outside + jnp.minimum(jnp.maximum(x, jnp.maximum(y, z)), 0)


def capsule(p: Array, half: Any, radius: Any) -> Array:
    """All within `radius` of the segment from -half to half on the z axis."""
    p = _points("capsule", p)
    half, radius = _size("capsule: half", half, least=0), _size("capsule: radius", radius, least=0)
    z = p[:, 2]
    return _norm(p[:, 0], p[:, 1], z - jnp.clip(z, -half, half)) - radius


def torus(p: Array, ring: Any, tube: Any) -> Array:
    """A ring of radius `ring` in the xy plane, the tube of radius `tube` thick."""
    p = _points("torus", p)
    ring, tube = _size("torus: ring", ring, least=0), _size("torus: tube", tube, least=0)
    return _norm(_norm(p[:, 0], p[:, 1]) - ring, p[:, 2]) - tube


def plate_with_hole(p: Array, radius: Any, thickness: Any) -> Array:
    """An endless plate, its top at z = 0, with a round hole through it along the z axis."""
    p, radius = _points("plate_with_hole", p), _size("plate_with_hole: radius", radius, above=0)
    thickness = _size("plate_with_hole: thickness", thickness, above=0)
    wall = radius - _norm(p[:, 0], p[:, 1])
    top, bottom = p[:, 2], -thickness - p[:, 2]
    face = jnp.maximum(top, bottom)
    outside = _norm(jnp.maximum(wall, 0), jnp.maximum(face, 0))
    return outside + jnp.minimum(jnp.maximum(wall, face), 0)


def _points(name: str, p: Any) -> Array:
    """Points [K, 3, ...] as an array of floating numbers."""
    p = jnp.asarray(numbers(f"{name}: p", p))
    if p.ndim < 2 or p.shape[1] != 3:
        raise ValueError(f"{name}: p has shape {list(p.shape)}; it must be [K, 3]; batch axes last")
    return p if jnp.issubdtype(p.dtype, jnp.floating) else p.astype(float)


def _size(name: str, x: Any, **bounds: Any) -> Any:
    """One number, or one for each point of a batch."""
    if jnp.size(numbers(name, x, **bounds)) == 0:
        raise ValueError(f"{name} is empty; it must be a number")
    return x


def _sizes(name: str, x: Any) -> Any:
    """Three half widths, held against their range where they can be seen."""
    if not any(isinstance(part, jax.core.Tracer) for part in jax.tree.leaves(x)):
        return numbers(name, x, (3,), least=0)
    return x


def _norm(*parts: Array) -> Array:
    """Euclidean norm whose derivative at zero is zero, not nan."""
    square = sum(x * x for x in parts[1:]) + parts[0] * parts[0]
    away = square > 0
    return jnp.where(away, jnp.sqrt(jnp.where(away, square, 1.0)), 0.0)
