"""Contacts of a shape that is given by its signed distance, including holes and hollows.

The surface of a shape is covered by points, grouped into patches. The point of each patch that is
deepest in the other shape may be a contact, so there are as many contacts as patches, all around
the shape. The normal is the gradient of the other's distance. Of a round shape only its points are
tested, with balls around them; of other pairs the points of both, to find the corners of either.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import sdf
from jaxgpu.geometry.vectors import Vec, dot
from jaxgpu.inputs.fields import number, pytree

from .hull import HIGHEST, from_world, to_world
from .shape import Collision, Shape, collision, direction

NUM_PATCHES, PATCH_POINTS = 16, 32  # patches of a mesh's surface; points of a patch
_ROUND_TYPES = ("sphere", "capsule", "ellipsoid")  # types of which only the points are tested
SAMPLED_TYPES = (
    "sphere",
    "capsule",
    "ellipsoid",
    "cylinder",
    "box",
    "sdf",
)  # types a field can touch


@pytree
class DistanceField:
    """A shape by its signed distance, and points of its surface."""

    shape: Any  # has distance(x), m
    pos: Array = number(unit="m")  # [3] of the geom's centre in the axes of the shape
    rot: Array = number()  # [3, 3] from the geom's axes to the shape's
    points: Array = number(unit="m")  # [K, N, 3] of the surface in K patches, in the geom's axes

    def distance(self, x: Vec) -> Array:
        """Return the signed distance of the surface at a point in the geom's axes, m."""
        at = (p + dot(tuple(row), x) for p, row in zip(self.pos, self.rot))
        return self.shape.distance(tuple(at))


def num_contacts(kind: str) -> int:
    """Return the number of contacts that a shape of a type and a field may have."""
    own = NUM_PATCHES if kind == "sdf" else len(_surface_points(kind))
    return own + (0 if kind in _ROUND_TYPES else NUM_PATCHES)


def collide_field(
    kind: str, one: Shape, two: Shape, own: DistanceField | None, field: DistanceField
) -> Collision:
    """Return the contacts of a shape and a field; `own` is the first shape's field, if any."""
    none = jnp.zeros_like(one.size[0])
    points, radius = (own.points, none) if own else _sample_points(kind, one.size)
    dist, pos, out = _deepest_points(points, radius, one, two, field.distance)
    if kind in _ROUND_TYPES:
        return collision(dist, tuple(pos.T), tuple(-out.T))
    distance = own.distance if own else _distance_function(kind, one.size)
    back = _deepest_points(field.points, none, two, one, distance)
    join = lambda a, b: tuple(jnp.concatenate([a, b]).T)
    return collision(jnp.concatenate([dist, back[0]]), join(pos, back[1]), join(-out, back[2]))


def _deepest_points(
    points: Array, radius: Array, of: Shape, other: Shape, distance: Callable[[Vec], Array]
) -> tuple[Array, Array, Array]:
    """Return each patch's deepest point in another shape: distance, position, gradient [K, ...].

    Points [K, N, 3] carry balls of a radius; the position is midway between the surfaces.
    """
    turn = jnp.einsum("ji,jk->ik", other.rot, of.rot, precision=HIGHEST)
    inner = _transform_points(turn, from_world(other.rot, of.pos - other.pos), points)
    distance_at = lambda x: distance(tuple(jnp.moveaxis(x, -1, 0)))
    best = jnp.argmin(lax.stop_gradient(distance_at(inner)), 1)
    chosen = jnp.take_along_axis(inner, best[:, None, None], 1)[:, 0]
    depth, slope = jax.vmap(jax.value_and_grad(distance_at))(chosen)
    normal = jnp.stack(direction(tuple(slope.T), (0.0, 0.0, 1.0))[0], 1)
    middle = chosen - normal * ((radius + depth) / 2)[:, None]
    return (
        depth - radius,
        _transform_points(other.rot, other.pos, middle),
        to_world(other.rot, normal),
    )


def _transform_points(rot: Array, pos: Array, points: Array) -> Array:
    return to_world(rot, points) + jnp.broadcast_to(pos, points.shape)


def _sample_points(kind: str, size: Array) -> tuple[Array, Array]:
    """Return points [K, N, 3] of a simple shape of size [3], and the radius of balls about them."""
    unit = jnp.asarray(_surface_points(kind), size.dtype)
    zero = jnp.zeros_like(size[0])
    if kind == "sphere":
        return unit, size[0]
    if kind == "capsule":
        return unit * size[1], size[0]
    scale = jnp.stack([size[0], size[0], size[1]]) if kind == "cylinder" else size
    return unit * jnp.broadcast_to(scale, unit.shape), zero


def _distance_function(kind: str, size: Array) -> Callable[[Vec], Array]:
    """Return the distance function of a cylinder or box of size [3]."""
    flat = sdf.Cylinder(size[1], size[0]) if kind == "cylinder" else sdf.Box(size)
    return flat.distance


@lru_cache(maxsize=8)
def _surface_points(kind: str) -> np.ndarray:
    """Return points [K, N, 3] on the surface of a unit shape, or on the axis of a round one."""
    if kind == "sphere":
        return np.zeros((1, 1, 3))
    if kind == "capsule":
        axis = np.linspace(-1, 1, NUM_PATCHES)[:, None] * [[0.0, 0.0, 1.0]]
        return axis.reshape(NUM_PATCHES // 2, 2, 3)
    if kind == "ellipsoid":
        i = np.arange(256) + 0.5
        z, turn = 1 - i / 128, np.pi * (3 - np.sqrt(5)) * i
        flat = np.sqrt(1 - z * z)
        ball = np.stack([flat * np.cos(turn), flat * np.sin(turn), z], 1)
        return group_points(ball, ball)
    if kind == "cylinder":
        ring = np.arange(32) * (2 * np.pi / 32)
        circle = np.stack([np.cos(ring), np.sin(ring), 0 * ring], 1)
        side = np.concatenate([circle + [0, 0, z] for z in np.linspace(-1, 1, 6)])
        caps = np.concatenate([0.5 * circle[::2] + [0, 0, z] for z in (-1, 1)])
        way = np.concatenate([np.tile(circle, (6, 1)), np.repeat([[0, 0, -1.0], [0, 0, 1]], 16, 0)])
        return group_points(np.concatenate([side, caps]), way)
    ends = np.linspace(-1, 1, 8)
    u, v = (a.ravel() for a in np.meshgrid(ends, ends))
    faces, ways = [], []
    for axis in range(3):
        for side in (-1.0, 1.0):
            faces.append(np.roll(np.stack([np.full_like(u, side), u, v], 1), axis, 1))
            ways.append(np.tile(np.roll([side, 0, 0], axis), (len(u), 1)))
    return group_points(np.concatenate(faces), np.concatenate(ways))


def group_points(points: np.ndarray, normals: np.ndarray, count: int = NUM_PATCHES) -> np.ndarray:
    """Group points [N, 3] of a surface in `count` patches [K, N / K, 3] of equal size.

    `count` is a power of two. Each part is split in half again where it is longest; points whose
    normals are opposite count as far from one another.
    """
    spread = np.ptp(points, axis=0).max()
    known = np.concatenate([points, 0.5 * spread * normals], 1)
    parts = [np.arange(len(points))]
    while len(parts) < count:
        halves = []
        for part in parts:
            axis = np.argmax(np.ptp(known[part], axis=0))
            order = part[np.argsort(known[part, axis], kind="stable")]
            halves += [order[: len(order) // 2], order[len(order) // 2 :]]
        parts = halves
    return points[np.stack(parts)]
