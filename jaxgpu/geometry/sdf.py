"""Signed distances of simple shapes and their combinations: negative inside, metres.

A shape acts on a tuple of D coordinate arrays in its own frame, its middle at the origin; what is
long or round lies along the last axis (z in space, as in MuJoCo, and y in the plane) unless its
`axis` says another. Gradients come from differentiation, so normals are exact wherever the distance
is smooth, and every size is differentiable.
Quilez (2008), https://iquilezles.org/articles/distfunctions, for the formulas.
"""

from itertools import product
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from .vectors import Vec, dot, length


@pytree
class HalfSpace:
    """Everything behind a plane: normal . x < height, for the normal made of length one.

    >>> HalfSpace((0.0, 0.0, 2.0), 0.5).distance(tuple(jnp.array([1.0, 2.0, 3.0]))).tolist()
    2.5
    """

    normal: Any = number()  # [D] outward, of any length
    height: Array | float = number(default=0.0, unit="m", one=True)  # [] from the origin

    def distance(self, x: Vec) -> Array:
        """Distance from the plane, m."""
        n = jnp.asarray(self.normal, x[0].dtype)
        n = n / jnp.sqrt(jnp.sum(n * n))
        return dot([n[i] for i in range(len(x))], x) - self.height


@pytree
class Ball:
    """A disc or a ball.

    >>> float(Ball(2.0).distance((jnp.array(3.0), jnp.array(4.0))))
    3.0
    """

    radius: Array | float = number(above=0, unit="m", one=True)  # []

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        return length(x) - self.radius


@pytree
class Box:
    """A rectangle or a cuboid, its faces along the axes."""

    half: Any = number(above=0, unit="m")  # [D] half widths

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
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

    half: Array | float = number(least=0, unit="m", one=True)  # [] half the segment's length
    radius: Array | float = number(above=0, unit="m", one=True)  # []
    axis: int = size(default=-1, least=-3, most=2)  # along which the segment lies

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        i = self.axis % len(x)
        along = x[i] - jnp.clip(x[i], -self.half, self.half)
        return length((*x[:i], along, *x[i + 1 :])) - self.radius


@pytree
class Cylinder:
    """A round cylinder, in 3-D."""

    half: Array | float = number(above=0, unit="m", one=True)  # [] half its height
    radius: Array | float = number(above=0, unit="m", one=True)  # []
    axis: int = size(default=-1, least=-3, most=2)  # of its symmetry

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        along, out = _along_and_out(x, self.axis)
        return Box((self.radius, self.half)).distance((out, along))


@pytree
class Torus:
    """A ring of radius `ring` about an axis, its tube of radius `tube` thick, in 3-D."""

    ring: Array | float = number(least=0, unit="m", one=True)  # []
    tube: Array | float = number(least=0, unit="m", one=True)  # []
    axis: int = size(default=-1, least=-3, most=2)  # of its symmetry

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        along, out = _along_and_out(x, self.axis)
        return length((out - self.ring, along)) - self.tube


@pytree
class HoledPlate:
    """An endless plate, its top at 0 along an axis, with a round hole about it, in 3-D."""

    radius: Array | float = number(above=0, unit="m", one=True)  # [] of the hole
    thickness: Array | float = number(above=0, unit="m", one=True)  # []
    axis: int = size(default=-1, least=-3, most=2)  # of the hole

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        along, out = _along_and_out(x, self.axis)
        wall, face = self.radius - out, jnp.maximum(along, -self.thickness - along)
        outside = length((jnp.maximum(wall, 0), jnp.maximum(face, 0)))
        return outside + jnp.minimum(jnp.maximum(wall, face), 0)


def _along_and_out(x: Vec, axis: int) -> tuple[Array, Array]:
    """The coordinate along an axis, and the distance from it."""
    i = axis % len(x)
    return x[i], length((*x[:i], *x[i + 1 :]))


@pytree
class Moved:
    """A shape moved by an offset."""

    shape: Any  # what is moved, any shape of this module
    offset: Any = number(unit="m")  # [D]

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        return self.shape.distance(tuple(a - self.offset[i] for i, a in enumerate(x)))


@pytree
class Rounded:
    """A shape grown by a radius on all sides."""

    shape: Any  # what is rounded, any shape of this module
    radius: Array | float = number(least=0, unit="m", one=True)  # []

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        return self.shape.distance(x) - self.radius


@pytree
class Union:
    """Everything in any of the shapes; the distance is a lower bound inside."""

    shapes: tuple[Any, ...]  # what is united, shapes of this module

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        nearest = self.shapes[0].distance(x)
        for shape in self.shapes[1:]:
            nearest = jnp.minimum(nearest, shape.distance(x))
        return nearest


@pytree
class Outside:
    """Everything but the shape: the wall of a vessel."""

    shape: Any  # what is turned inside out, any shape of this module

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        return -self.shape.distance(x)


@pytree
class Intersection:
    """What all shapes have in common; the distance is a lower bound outside."""

    shapes: tuple[Any, ...]  # what is intersected, shapes of this module

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m."""
        return Outside(Union(tuple(Outside(shape) for shape in self.shapes))).distance(x)


@pytree
class Voxels:
    """Distances sampled on a regular grid, trilinear between its points.

    >>> ramp = jnp.arange(3.0)[:, None] * jnp.ones((1, 3))
    >>> float(Voxels(ramp, (0.0, 0.0), 0.5).distance((jnp.array(0.2), jnp.array(0.7))))
    0.4000000059604645
    """

    # distance at n, ... points along the D axes, at least 2 of each; place of the first of them
    values: Array = number(unit="m")  # [n, ...]
    lower: Any = number(unit="m")  # [D]
    spacing: Array | float = number(above=0, unit="m", one=True)  # []

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m; beyond the grid at least that from the grid."""
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
