"""Scenes of simple solids in arrays: rotated boxes, capsules and balls, planes.

Arrays may have more rows than there are solids: a row with a half size or a radius below 0 is
absent.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import pytree

from . import rotations
from .vectors import Vec, length

ABSENT_DEPTH = 1e6  # m, distance to which an absent box is moved, beyond the range of rays


@pytree
class Boxes:
    """N boxes, rotated about z or in any way. A box with a half size below 0 is absent.

    >>> boxes = Boxes(jnp.zeros((2, 3)), jnp.ones((2, 3)), jnp.zeros(2))
    >>> boxes.distance(jnp.array([3.0, 0.0, 0.0])).tolist()
    [2.0, 2.0]
    """

    centre: Array  # [N, 3] centers, m
    half: Array  # [N, 3] half sizes along their own axes, m
    turn: Array  # [N] angles about z, rad, or [N, 4] quaternions (w, x, y, z)

    @property
    def is_present(self) -> Array:
        """Mask of the boxes that are present: [N]."""
        return jnp.all(self.half >= 0, -1)

    def axes(self) -> tuple[Array, ...]:
        """Return cos and sin [N] of the angles, or the nine entries [N] of inverse rotations."""
        if self.turn.ndim == self.half.ndim - 1:
            return jnp.cos(self.turn), jnp.sin(self.turn)
        R = rotations.matrix(jnp.moveaxis(self.turn, -1, 0))
        return tuple(R[j][i] for i in range(3) for j in range(3))

    def distance(self, x: Array) -> Array:
        """Return distances [N] from a point [3] to the boxes, m: 0 inside; infinite if absent."""
        ranges.check_finite("Boxes.distance", x=x)
        off = to_box_frame(self.axes(), tuple(x[i] - self.centre[..., i] for i in range(3)))
        beyond = [jnp.maximum(jnp.abs(a) - self.half[..., i], 0) for i, a in enumerate(off)]
        return jnp.where(self.is_present, length(beyond), jnp.inf)

    def hide_absent(self) -> "Boxes":
        """Return the same boxes; absent ones become points, a thousand kilometres below."""
        here = self.is_present[..., None]
        below = jnp.array([[0.0, 0.0, -ABSENT_DEPTH]], self.centre.dtype)
        centre = jnp.where(here, self.centre, below)
        return replace(self, centre=centre, half=jnp.where(here, self.half, 0))


def to_box_frame(axes: tuple[Array, ...], v: Vec) -> Vec:
    """Rotate a vector from the space frame to the frames of boxes with these `Boxes.axes`."""
    x, y, z = v
    if len(axes) == 2:
        c, s = axes
        return c * x + s * y, c * y - s * x, z
    a = axes
    return tuple(a[i] * x + a[i + 1] * y + a[i + 2] * z for i in (0, 3, 6))


def to_world_frame(axes: tuple[Array, ...], v: Vec) -> Vec:
    """Rotate a vector from the frames of boxes to the space frame."""
    x, y, z = v
    if len(axes) == 2:
        c, s = axes
        return c * x - s * y, s * x + c * y, z
    a = axes
    return tuple(a[i] * x + a[i + 3] * y + a[i + 6] * z for i in range(3))


@pytree
class Rods:
    """M capsules; a capsule of length 0 is a ball, one with a radius below 0 is absent."""

    start: Array  # [M, 3] one end of the segment, m
    end: Array  # [M, 3] the other end, m
    radius: Array  # [M] radius, m


@pytree
class Planes:
    """K planes normal . x = height, visible from either side."""

    normal: Array  # [K, 3] unit vectors
    height: Array  # [K] signed distance from the origin, m


@pytree
class Solids:
    """Boxes, capsules and planes, numbered in this order."""

    boxes: Boxes
    rods: Rods | None = None
    planes: Planes | None = None

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of boxes, capsules and planes, including absent ones."""
        rods = 0 if self.rods is None else self.rods.radius.shape[-1]
        planes = 0 if self.planes is None else self.planes.height.shape[-1]
        return self.boxes.half.shape[-2], rods, planes
