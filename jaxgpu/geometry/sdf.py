"""Signed distances of simple shapes and their combinations: negative inside, metres.

A shape acts on a tuple of D coordinate arrays in its own frame, with its center at the origin. Long
or round shapes are aligned with the last axis (z in space, as in MuJoCo, and y in the plane) unless
`axis` is set. Gradients come from differentiation, so normals are exact wherever the distance is
smooth, and every size is differentiable. Quilez (2008),
https://iquilezles.org/articles/distfunctions, for the formulas.
"""

from itertools import product
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from .vectors import Vec, dot, length


@pytree
class HalfSpace:
    """All points behind a plane: normal . x < height, with the normal scaled to length one.

    >>> HalfSpace((0.0, 0.0, 2.0), 0.5).distance(tuple(jnp.array([1.0, 2.0, 3.0]))).tolist()
    2.5
    """

    normal: Any = number()  # [D] outward, of any length
    height: Array | float = number(default=0.0, unit="m", one=True)  # [] distance from the origin

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the plane, m."""
        n = jnp.asarray(self.normal, x[0].dtype)
        n = n / jnp.sqrt(jnp.sum(n * n))
        return dot([n[i] for i in range(len(x))], x) - self.height


@pytree
class Ball:
    """A disc or a ball.

    >>> float(Ball(2.0).distance((jnp.array(3.0), jnp.array(4.0))))
    3.0
    """

    radius: Array | float = number(above=0, unit="m", one=True)  # [] radius

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        return length(x) - self.radius


@pytree
class Box:
    """A rectangle or a cuboid with faces along the axes."""

    half: Any = number(above=0, unit="m")  # [D] half widths

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        q = [jnp.abs(a) - self.half[i] for i, a in enumerate(x)]
        furthest = q[0]
        for a in q[1:]:
            furthest = jnp.maximum(furthest, a)
        return length([jnp.maximum(a, 0) for a in q]) + jnp.minimum(furthest, 0)


@pytree
class Capsule:
    """All points within a radius of a segment through the origin.

    >>> float(Capsule(1.0, 0.5).distance((jnp.array(2.0), jnp.array(0.0), jnp.array(1.0))))
    1.5
    """

    half: Array | float = number(least=0, unit="m", one=True)  # [] half length of the segment
    radius: Array | float = number(above=0, unit="m", one=True)  # [] radius
    axis: int = size(default=-1, least=-3, most=2)  # axis of the segment

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        i = self.axis % len(x)
        along = x[i] - jnp.clip(x[i], -self.half, self.half)
        return length((*x[:i], along, *x[i + 1 :])) - self.radius


@pytree
class Cylinder:
    """A round cylinder in 3-D."""

    half: Array | float = number(above=0, unit="m", one=True)  # [] half height
    radius: Array | float = number(above=0, unit="m", one=True)  # [] radius
    axis: int = size(default=-1, least=-3, most=2)  # axis of symmetry

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        along, out = _axial_and_radial(x, self.axis)
        return Box((self.radius, self.half)).distance((out, along))


@pytree
class Torus:
    """A torus in 3-D: a ring of radius `ring` about an axis, with a tube of radius `tube`."""

    ring: Array | float = number(least=0, unit="m", one=True)  # [] radius of the ring
    tube: Array | float = number(least=0, unit="m", one=True)  # [] radius of the tube
    axis: int = size(default=-1, least=-3, most=2)  # axis of symmetry

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        along, out = _axial_and_radial(x, self.axis)
        return length((out - self.ring, along)) - self.tube


@pytree
class HoledPlate:
    """An infinite plate in 3-D with its top at 0 along an axis and a round hole about the axis."""

    radius: Array | float = number(above=0, unit="m", one=True)  # [] radius of the hole
    thickness: Array | float = number(above=0, unit="m", one=True)  # [] of the plate
    axis: int = size(default=-1, least=-3, most=2)  # axis of the hole

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        along, out = _axial_and_radial(x, self.axis)
        wall, face = self.radius - out, jnp.maximum(along, -self.thickness - along)
        outside = length((jnp.maximum(wall, 0), jnp.maximum(face, 0)))
        return outside + jnp.minimum(jnp.maximum(wall, face), 0)


def _axial_and_radial(x: Vec, axis: int) -> tuple[Array, Array]:
    """Return the coordinate along an axis, and the distance from the axis."""
    i = axis % len(x)
    return x[i], length((*x[:i], *x[i + 1 :]))


@pytree
class Moved:
    """A shape translated by an offset."""

    shape: Any  # the translated shape, any of this module
    offset: Any = number(unit="m")  # [D] translation

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        return self.shape.distance(tuple(a - self.offset[i] for i, a in enumerate(x)))


@pytree
class Rounded:
    """A shape expanded by a radius on all sides."""

    shape: Any  # the rounded shape, any of this module
    radius: Array | float = number(least=0, unit="m", one=True)  # [] added radius

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        return self.shape.distance(x) - self.radius


@pytree
class Union:
    """All points in any of the shapes; the distance is a lower bound inside."""

    shapes: tuple[Any, ...]  # united shapes, any of this module

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        nearest = self.shapes[0].distance(x)
        for shape in self.shapes[1:]:
            nearest = jnp.minimum(nearest, shape.distance(x))
        return nearest


@pytree
class Complement:
    """The complement of a shape, e.g. the wall of a vessel."""

    shape: Any  # the inverted shape, any of this module

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        return -self.shape.distance(x)


@pytree
class Intersection:
    """All points common to the shapes; the distance is a lower bound outside."""

    shapes: tuple[Any, ...]  # intersected shapes, any of this module

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        return Complement(Union(tuple(Complement(shape) for shape in self.shapes))).distance(x)


@pytree
class Voxels:
    """Distances sampled on a regular grid, with trilinear interpolation between its points.

    >>> ramp = jnp.arange(3.0)[:, None] * jnp.ones((1, 3))
    >>> float(Voxels(ramp, (0.0, 0.0), 0.5).distance((jnp.array(0.2), jnp.array(0.7))))
    0.4000000059604645
    """

    # distance at n, ... points along the D axes, at least 2 each
    values: Array = number(unit="m")  # [n, ...]
    lower: Any = number(unit="m")  # [D] first grid point
    spacing: Array | float = number(above=0, unit="m", one=True)  # [] grid spacing

    def distance(self, x: Vec) -> Array:
        """Return the signed distance, m; outside the grid, at least the distance to the grid."""
        at, far = [], []
        for i, n in enumerate(self.values.shape):
            q = (x[i] - self.lower[i]) / self.spacing
            at.append(jnp.clip(q, 0, n - 1))
            far.append((q - at[-1]) * self.spacing)
        first = [jnp.clip(jnp.floor(q), 0, n - 2) for q, n in zip(at, self.values.shape)]
        total = jnp.zeros_like(x[0])
        for corner in product((0, 1), repeat=len(x)):
            share = jnp.ones_like(x[0])
            for q, b, side in zip(at, first, corner):
                share = share * (q - b if side else 1 - (q - b))
            index = tuple(b.astype(jnp.int32) + side for b, side in zip(first, corner))
            total = total + share * self.values[index].astype(x[0].dtype)
        return total + length(far)
