"""A plane against round shapes and boxes: the lowest points of the other shape."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.vectors import Vec, cross, dot

from .shape import Collision, VecShape, collision, direction, kernel, minus, plus, select, times

CORNERS = np.array([[2 * (i >> j & 1) - 1 for j in range(3)] for i in range(8)])  # [8, 3] of +-1


def plane_points(plane: VecShape, points: Vec, tangent: Vec | None = None) -> Collision:
    """Return the contacts of a plane and points of another surface, components [k]."""
    dist = dot(minus(points, plane.pos), plane.z_axis)
    return collision(dist, plus(points, plane.z_axis, -dist / 2), plane.z_axis, tangent)


def stack_points(*points: Vec) -> Vec:
    """Stack k vectors into one vector with components [k]."""
    return tuple(jnp.stack(component) for component in zip(*points))


@kernel
def plane_sphere(plane: VecShape, sphere: VecShape) -> Collision:
    """Return the contact of a plane and a sphere, one row."""
    return plane_points(plane, stack_points(plus(sphere.pos, plane.z_axis, -sphere.size[0])))


@kernel
def plane_capsule(plane: VecShape, capsule: VecShape) -> Collision:
    """Return the contacts of a plane and both ends of a capsule; tangents are along its axis."""
    radius, half = capsule.size[0], capsule.size[1]
    centre = plus(capsule.pos, plane.z_axis, -radius)
    ends = stack_points(plus(centre, capsule.z_axis, half), plus(centre, capsule.z_axis, -half))
    return plane_points(plane, ends, capsule.z_axis)


@kernel
def plane_ellipsoid(plane: VecShape, ellipsoid: VecShape) -> Collision:
    """Return the contact of a plane and the lowest point of an ellipsoid, one row."""
    down = times(ellipsoid.from_world(plane.z_axis), -1.0)
    scale_by_radii = lambda v: tuple(r * x for r, x in zip(ellipsoid.size, v))
    lowest = scale_by_radii(direction(scale_by_radii(down), down)[0])
    return plane_points(plane, stack_points(ellipsoid.point_to_world(lowest)))


@kernel
def plane_cylinder(plane: VecShape, cylinder: VecShape) -> Collision:
    """Return the contacts of a plane and a cylinder, four rows.

    They are the lowest points of the lower and of the upper rim, and the two points that form a
    triangle with the first on the lower rim.
    """
    normal, radius = plane.z_axis, cylinder.size[0]
    lean = dot(normal, cylinder.z_axis)
    along = times(cylinder.z_axis, jnp.where(lean > 0, -1.0, 1.0).astype(lean.dtype))
    down = minus(times(along, dot(normal, along)), normal)
    out = times(direction(down, cylinder.axes[0])[0], radius)
    reach = times(along, cylinder.size[1])
    side = times(direction(cross(out, reach), cylinder.axes[1])[0], radius * 3**0.5 / 2)
    low, high = plus(cylinder.pos, reach), minus(cylinder.pos, reach)
    back = plus(low, out, -0.5)
    points = stack_points(plus(low, out), plus(high, out), plus(back, side), minus(back, side))
    return plane_points(plane, points)


@kernel
def plane_box(plane: VecShape, box: VecShape) -> Collision:
    """Return the contacts of a plane and the four corners of a box below its centre, four rows.

    One of each two opposite corners is taken, the first in a tie, so there are always four.
    """
    signs = jnp.asarray(CORNERS[:4].T, box.size[0].dtype)
    corner = box.turn(tuple(s * r for s, r in zip(signs, box.size)))
    return plane_points(plane, plus(box.pos, _flip_down(corner, plane.z_axis)))


def _flip_down(corner: Vec, normal: Vec) -> Vec:
    """Return vectors, negated where they point along the normal."""
    return select(dot(corner, normal) > 0, times(corner, -1.0), corner)


def as_vectors(values: np.ndarray, like: Array) -> Vec:
    """Convert a NumPy array [k, D] to vectors with components [k]."""
    return tuple(jnp.asarray(column, like.dtype) for column in values.T)
