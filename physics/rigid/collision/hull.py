"""Every convex shape in one form: the hull of points, each thickened by one ellipsoid and a ball.

A box and a mesh are points only; a capsule is two points and a ball, a cylinder two points and a
disk, an ellipsoid one point and the ellipsoid. The farthest point along a direction is then the
sum of three, so one kernel handles any two shapes.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

from .planes import CORNERS
from .shape import Shape

HIGHEST = lax.Precision.HIGHEST
SEGMENT = ((0, 0, 1), (0, 0, -1))  # the ends of an axis, in half lengths
# types that have a hull
CONVEX_TYPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh")


@pytree
class Hull:
    """A convex shape in space."""

    points: Array  # [N, 3] in the shape's axes, about its centre, m
    radii: Array  # [3] of the ellipsoid, along the shape's axes, m
    radius: Array  # [] of the ball, m
    pos: Array  # [3] centre, m
    rot: Array  # [3, 3] shape to world


def hull(kind: str, shape: Shape, points: Array | None = None, count: int = 0) -> Hull:
    """Return the hull of a shape with at least `count` points; `points` are those of a mesh."""
    if points is None:
        points, radii, radius = _primitive_hull(kind, shape.size)
    else:
        radii, radius = jnp.zeros_like(shape.size), jnp.zeros_like(shape.size[0])
    spare = jnp.broadcast_to(points[:1], (max(count - len(points), 0), 3))
    points = jnp.concatenate([points, spare])
    return Hull(points=points, radii=radii, radius=radius, pos=shape.pos, rot=shape.rot)


def rbound(one: Hull) -> Array:
    """Return the radius of a ball about the centre that contains the shape, m."""
    far = jnp.sqrt(jnp.max(dot_rows(one.points, one.points)))
    return far + jnp.max(one.radii) + one.radius


def _primitive_hull(kind: str, size: Array) -> tuple[Array, Array, Array]:
    """Return the points [N, 3], radii [3] and radius of a simple shape of size [3]."""
    zero = jnp.zeros_like(size)
    if kind == "box":
        return jnp.asarray(CORNERS, size.dtype) * size[None], zero, zero[0]
    if kind == "ellipsoid":
        return zero[None], size, zero[0]
    if kind == "sphere":
        return zero[None], zero, size[0]
    ends = jnp.asarray(SEGMENT, size.dtype) * size[1]
    if kind == "capsule":
        return ends, zero, size[0]
    return ends, jnp.stack([size[0], size[0], zero[0]]), zero[0]


def to_world(rot: Array, v: Array) -> Array:
    """Rotate a vector, or vectors [..., 3], from a shape's axes to the world's."""
    return jnp.einsum("ij,...j->...i", rot, v, precision=HIGHEST)


def from_world(rot: Array, v: Array) -> Array:
    """Rotate a vector from the world's axes to a shape's."""
    return jnp.einsum("ji,j->i", rot, v, precision=HIGHEST)


def dot_rows(a: Array, b: Array) -> Array:
    """Return the scalar products of vectors [..., 3]."""
    return jnp.sum(a * b, -1)


def tangents(n: Array) -> Array:
    """Return two directions [2, 3] across a unit vector."""
    least = jax.nn.one_hot(jnp.argmin(jnp.abs(n)), 3, dtype=n.dtype)
    t = jnp.cross(n, least)
    t = t / jnp.sqrt(dot_rows(t, t))
    return jnp.stack([t, jnp.cross(n, t)])


def support_index(one: Hull, n: Array) -> Array:
    """Return the index of the point that is farthest along a world direction."""
    return jnp.argmax(jnp.einsum("kj,j->k", one.points, from_world(one.rot, n), precision=HIGHEST))


def bulge(one: Hull, n: Array) -> Array:
    """Return the farthest point of the ellipsoid about its centre, in the world; 0 for a point."""
    scaled = one.radii * from_world(one.rot, n)
    square = dot_rows(scaled, scaled)
    there = square > 0
    return to_world(one.rot, one.radii * scaled) * jnp.where(
        there, 1 / jnp.sqrt(jnp.where(there, square, 1)), 0
    )


def curvature_radii(one: Hull, n: Array) -> Array:
    """Return the derivative [3, 3] of `bulge` by a unit direction: radii of curvature, m."""
    scaled = one.radii * from_world(one.rot, n)
    square = dot_rows(scaled, scaled)
    there = square > 0
    share = jnp.where(there, 1 / jnp.sqrt(jnp.where(there, square, 1)), 0)
    pull = one.radii * scaled * share
    inner = (jnp.diag(one.radii**2) - pull[:, None] * pull[None]) * share
    return jnp.einsum("ij,jk,lk->il", one.rot, inner, one.rot, precision=HIGHEST)
