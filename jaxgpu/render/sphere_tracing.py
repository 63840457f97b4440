"""Depth images of shapes by sphere tracing: steps along rays as long as the distance to the shape.

Hart (1996), doi:10.1007/s003710050084. A distance that is a lower bound (unions inside,
intersections outside) only takes more steps.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import rotations
from jaxgpu.geometry.vectors import Vec, unit
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.explanations import explain_errors

from .camera import Camera, check_camera


@explain_errors
def trace(
    camera: Camera, shape: Any, x: Array, turn: Array, *, far: Array | float, steps: int = 64
) -> tuple[Array, Vec]:
    """Return the depth at which each pixel meets a shape in 3-D, and the shape's normals there.

    Args:
        camera: the viewpoint.
        shape: an `sdf` shape, in its own frame.
        x: [3] position of its origin, m.
        turn: [4] its orientation, a quaternion (w, x, y, z).
        far: depth beyond which shapes are not visible, m.
        steps: maximum along each ray; a ray that grazes the shape for longer counts as a miss.
    Returns:
        depth [H, W], m, infinite where the shape is missed; unit normals in space, 3 x [H, W].

    >>> from jaxgpu.geometry import sdf
    >>> from jaxgpu.render import Camera
    >>> camera = Camera((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), width=9, height=9)
    >>> still = jnp.array([1.0, 0.0, 0.0, 0.0])
    >>> ahead, normals = trace(camera, sdf.Ball(1.0), jnp.zeros(3), still, far=9.0)
    >>> float(ahead[4, 4].round(2))
    2.0
    """
    check_camera("trace", camera)
    ranges.check("trace", shape)
    ranges.numbers("trace: far", far, (), above=0, unit="m")
    ranges.numbers("trace: steps", steps, (), least=1, whole=True)
    x = jnp.asarray(ranges.numbers("trace: x", x, (3,), unit="m"))
    turn = jnp.asarray(ranges.numbers("trace: turn", turn, (4,)))
    defer_check(_check_rotation, turn)
    dtype = x.dtype
    tolerance = 1e-4 * far

    def distance(depth: Array) -> Array:
        return shape.distance(_to_shape_frame(x, turn, camera.unproject(depth)))

    a, b = camera.rays(dtype)
    stride = 1 / jnp.sqrt(a * a + b * b + 1)  # depth per metre along the ray

    def advance_rays(_: int, depth: Array) -> Array:
        return jnp.minimum(depth + stride * distance(depth), 2 * far)

    depth = lax.fori_loop(0, steps, advance_rays, jnp.full_like(a, 1e-3 * far))
    hit = (depth < far) & (jnp.abs(distance(depth)) < tolerance)
    local = _to_shape_frame(x, turn, camera.unproject(jnp.where(hit, depth, far)))
    away, pull = jax.vjp(shape.distance, local)
    normal = rotations.rotate(turn, pull(jnp.ones_like(away))[0])
    return jnp.where(hit, depth, jnp.inf), unit(normal)


def _check_rotation(turn: Array) -> None:
    if not np.any(np.asarray(turn)):
        raise ValueError("trace: turn is 0; it must be a quaternion; give (1, 0, 0, 0) for none")


def _to_shape_frame(x: Array, turn: Array, points: Vec) -> Vec:
    return rotations.rotate_inverse(turn, tuple(a - x[i] for i, a in enumerate(points)))
