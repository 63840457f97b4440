"""A pinhole camera: projection of points in space, and the rays of its pixels.

Camera coordinates are right, down and ahead, in metres. A point at (a t, b t, t) is projected to
column W / 2 + f a and row H / 2 + f b, counted from the upper left corner of the image, where
f = H / 2 / tan(angle / 2) is the focal length in pixels. Pixel i covers [i, i + 1).
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.geometry.vectors import Vec, dot
from jaxgpu.inputs import ranges
from jaxgpu.inputs.calls import defer_check
from jaxgpu.inputs.fields import number, pytree, size

RADIUS = ranges.Range(least=0, unit="m")


@pytree
class Camera:
    """Position, target and image size of a camera. Differentiable in all fields but the size."""

    eye: Any = number(unit="m")  # [3]
    target: Any = number(unit="m")  # [3] point at the centre of the image
    up: Any = number(default=(0.0, 1.0, 0.0))  # [3] upward direction, not parallel to the view
    # vertical field of view
    angle: Array | float = number(default=0.7, above=0, below=3.14159, unit="rad", one=True)  # []
    width: int = size(default=320, least=1)  # pixels
    height: int = size(default=240, least=1)  # pixels

    @property
    def focal_length(self) -> Array:
        """Focal length, pixels."""
        return self.height / 2 / jnp.tan(self.angle / 2)

    def axes(self, dtype: Any) -> Array:
        """Return unit vectors to the right, down and ahead, in space: [3, 3], one per row."""
        eye, target, up = (jnp.asarray(a, dtype) for a in (self.eye, self.target, self.up))
        ahead = rows.unit(target - eye)
        right = rows.unit(rows.cross(ahead, up))
        return jnp.stack([right, rows.cross(ahead, right), ahead])

    def to_camera_frame(self, x: Array) -> Vec:
        """Return points [..., 3], m, in camera coordinates: right, down and ahead, each [...].

        >>> ahead = Camera((0.0, 0.0, 2.0), (0.0, 0.0, 0.0))
        >>> [float(a) for a in ahead.to_camera_frame(jnp.array([0.5, 1.0, 0.0]))]
        [0.5, -1.0, 2.0]
        """
        ranges.check_finite(
            "Camera.to_camera_frame", x=x, eye=self.eye, target=self.target, up=self.up
        )
        eye = jnp.asarray(self.eye, x.dtype)
        arm = tuple(x[..., i] - eye[i] for i in range(3))
        return tuple(dot(arm, tuple(axis)) for axis in self.axes(x.dtype))

    def slopes(self, row: Array, column: Array) -> tuple[Array, Array]:
        """Return a and b of the ray (a, b, 1), in camera coordinates, through a pixel's centre."""
        f = jnp.asarray(self.focal_length, column.dtype)
        return (column + 0.5 - self.width / 2) / f, (row + 0.5 - self.height / 2) / f

    def rays(self, dtype: Any) -> tuple[Array, Array]:
        """Return the slopes a and b of the rays of all pixels, each [H, W]."""
        row = jnp.arange(self.height).astype(dtype)[:, None]
        column = jnp.arange(self.width).astype(dtype)[None]
        a, b = self.slopes(row, column)
        shape = (self.height, self.width)
        return jnp.broadcast_to(a, shape), jnp.broadcast_to(b, shape)

    def unproject(self, depth: Array) -> Vec:
        """Return the points in space that pixels show at depths [H, W]: three arrays [H, W], m."""
        a, b = self.rays(depth.dtype)
        right, down, ahead = self.axes(depth.dtype)
        eye = jnp.asarray(self.eye, depth.dtype)
        return tuple(
            eye[i] + depth * dot((a, b, jnp.ones_like(a)), (right[i], down[i], ahead[i]))
            for i in range(3)
        )


def check_camera(name: str, camera: Camera) -> None:
    """Raise an error for a camera whose view direction is zero or parallel to `up`."""
    ranges.check(name, camera)
    for field in ("eye", "target", "up"):
        ranges.numbers(f"{name}: Camera.{field}", getattr(camera, field), (3,))
    places = (camera.eye, camera.target, camera.up)
    defer_check(partial(_check_view_direction, name), *places)


def _check_view_direction(name: str, *places: Any) -> None:
    eye, target, up = (np.asarray(a, float) for a in places)
    if not np.linalg.norm(np.cross(target - eye, up)) > 1e-6 * np.linalg.norm(target - eye):
        raise ValueError(
            f"{name}: Camera.eye={eye.tolist()}, target={target.tolist()} and up={up.tolist()}; "
            "eye and target must differ, and up must not be parallel to the line between them"
        )


def check_points(name: str, x: Any, axis: int | str = "N", **bounds: Any) -> Array:
    """Check points or colours [N, 3] and return them in floating point."""
    x = ranges.numbers(name, x, (axis, 3), **bounds)
    if x.shape[0] == 0:
        raise ValueError(f"{name} has shape [0, 3]; give at least one, of radius 0 to hide it")
    return jnp.asarray(x) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.asarray(x, float)


def check_radii(name: str, radius: Any, x: Array) -> None:
    """Raise an error for radii that are negative, not numbers, or not of shape [] or [N]."""
    ranges.refuse(name, radius, RADIUS)
    if jnp.shape(radius) not in ((), x.shape[:1]):
        raise ValueError(
            f"{name} has shape {list(jnp.shape(radius))}; it must be [] or [{x.shape[0]}]"
        )
