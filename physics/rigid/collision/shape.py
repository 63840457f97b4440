"""Input and output of collision kernels: shapes in space, and their contacts.

Inside a kernel, vectors are tuples of components and matrices tuples of rows, each an array over
candidate points (`jaxgpu.geometry.vectors`). A kernel then compiles to a few loops over all pairs,
where each sum over an axis of three would end a loop.
"""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Mat, Vec, cross, dot
from jaxgpu.inputs.fields import pytree

type VecLike = tuple[Array | float, ...]  # a vector, also of Python floats

FAR = 1e10  # the distance in a row of `Collision` that holds no contact, m
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@pytree
class Shape:
    """One shape in space, in MuJoCo's terms.

    A capsule and a cylinder have the size (radius, half length), along their z axis; a box has its
    half edges, an ellipsoid its radii. The z axis of a plane is its normal.
    """

    pos: Array  # [3] centre, m
    rot: Array  # [3, 3] shape to world: column 2 is the z axis
    size: Array  # [3] m


@pytree
class Collision:
    """The contacts of two shapes: k rows, where k depends on the types of the shapes.

    Every row is finite; a row without a contact has the distance `FAR`.
    """

    dist: Array  # [k] between the surfaces, m; negative in penetration
    pos: Array  # [k, 3] midway between the surfaces, m
    frame: Array  # [k, 3, 3] rows: the normal from shape 1 to shape 2, and two tangents


class VecShape(NamedTuple):
    """A shape by its components."""

    pos: Vec  # 3 components of the centre, m
    axes: Mat  # the shape's axes in the world
    size: Vec  # 3 components, m, by type

    @property
    def z_axis(self) -> Vec:
        """The z axis."""
        return self.axes[2]

    def point_to_world(self, v: Vec) -> Vec:
        """Convert a point from the shape's frame to the world's."""
        return tuple(p + dot(v, row) for p, row in zip(self.pos, zip(*self.axes)))

    def turn(self, v: Vec) -> Vec:
        """Rotate a vector from the shape's axes to the world's."""
        return tuple(dot(v, row) for row in zip(*self.axes))

    def from_world(self, v: Vec) -> Vec:
        """Rotate a vector from the world's axes to the shape's."""
        return tuple(dot(v, axis) for axis in self.axes)


def kernel(inner: Callable[[VecShape, VecShape], Collision]) -> Callable[[Shape, Shape], Collision]:
    """Wrap a collision function of `VecShape` arguments to take `Shape` arguments."""

    @wraps(inner)
    def wrapped(one: Shape, two: Shape) -> Collision:
        return inner(to_vec_shape(one), to_vec_shape(two))

    return wrapped


def to_vec_shape(shape: Shape) -> VecShape:
    """Return the components of a shape."""
    n = range(3)
    axes = tuple(tuple(shape.rot[i, j] for i in n) for j in n)
    return VecShape(tuple(shape.pos[i] for i in n), axes, tuple(shape.size[i] for i in n))


def min_length(x: Array) -> float:
    """Return the smallest length of a vector with a direction: about 1e-15 in float64 (MuJoCo)."""
    return 5 * float(jnp.finfo(x.dtype).eps)


def plus(a: Vec, b: Vec, share: Array | float = 1.0) -> Vec:
    """Return a + share b."""
    return tuple(x + share * y for x, y in zip(a, b))


def minus(a: Vec, b: Vec) -> Vec:
    """Return a - b."""
    return tuple(x - y for x, y in zip(a, b))


def times(a: Vec, c: Array | float) -> Vec:
    """Return c a for a scalar c."""
    return tuple(x * c for x in a)


def select(mask: Array, a: VecLike, b: VecLike) -> Vec:
    """Select one of two vectors by a mask."""
    return tuple(jnp.where(mask, x, y) for x, y in zip(a, b))


def barrier[T](values: T) -> T:
    """Return the same values, but computed only once: a stage of a kernel ends here.

    A compiler that fused a stage into each of its consumers would compute it once for every
    candidate point, with a different rounding in each, so that a near tie would be decided twice.
    """
    return jax.lax.optimization_barrier(values)


def ratio(a: Array, b: Array) -> Array:
    """Return a / b, and 0 with derivative 0 where b is 0."""
    regular = b != 0
    return jnp.where(regular, a / jnp.where(regular, b, 1), 0)


def direction(v: Vec, otherwise: VecLike) -> tuple[Vec, Array]:
    """Return a unit vector along `v`, or `otherwise` where `v` is too short, and the length.

    Both are constant where `v` is too short, so that derivatives remain finite.
    """
    square = dot(v, v)
    long = square > min_length(square) ** 2
    share = jnp.where(long, 1 / jnp.sqrt(jnp.where(long, square, 1)), 0)
    return select(long, times(v, share), otherwise), square * share


def collision(dist: Array, pos: Vec, normal: Vec, tangent: Vec | None = None) -> Collision:
    """Return contacts at distances [k], with MuJoCo's frames about unit normals.

    The first tangent is the part across the normal of `tangent`, by default of (0, 1, 0), or of
    (0, 0, 1) where the normal is less than 60 degrees from the y axis.
    """
    if tangent is None:
        tangent = select(jnp.abs(normal[1]) >= 0.5, Z, Y)
    first = direction(plus(tangent, normal, -dot(normal, tangent)), X)[0]
    rows = (normal, first, cross(normal, first))
    stack_columns = lambda v: jnp.stack([jnp.broadcast_to(x, dist.shape) for x in v], -1)
    return Collision(dist, stack_columns(pos), jnp.stack([stack_columns(row) for row in rows], -2))
