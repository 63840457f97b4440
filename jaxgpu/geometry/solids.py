"""Scenes of simple solids in arrays: boxes turned in space, capsules and balls, planes.

What is a row of fewer things than there is room for has a half size or a radius below 0, and is
not there.
"""

from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import pytree

from . import rotations
from .vectors import Vec, length

GONE = 1e6  # m, how far off a box is put that is not there: beyond all that rays meet


@pytree
class Boxes:
    """N boxes, each turned about z or in any way. One with a half size below 0 is not there.

    >>> boxes = Boxes(jnp.zeros((2, 3)), jnp.ones((2, 3)), jnp.zeros(2))
    >>> boxes.distance(jnp.array([3.0, 0.0, 0.0])).tolist()
    [2.0, 2.0]
    """

    centre: Array  # [N, 3] middles, m
    half: Array  # [N, 3] half sizes, along their own axes, m
    turn: Array  # [N] angles about z, rad, or [N, 4] quaternions (w, x, y, z)

    @property
    def there(self) -> Array:
        """Which of them are there: [N]."""
        return jnp.all(self.half >= 0, -1)

    def axes(self) -> tuple[Array, ...]:
        """Cosines and sines [N] of the angles, or the nine entries [N] of the inverse rotations."""
        if self.turn.ndim == self.half.ndim - 1:
            return jnp.cos(self.turn), jnp.sin(self.turn)
        R = rotations.matrix(jnp.moveaxis(self.turn, -1, 0))
        return tuple(R[j][i] for i in range(3) for j in range(3))

    def distance(self, x: Array) -> Array:
        """Distances [N] from a point [3] to the boxes, m: 0 inside; infinite if not there."""
        ranges.finite("Boxes.distance", x=x)
        off = inside(self.axes(), tuple(x[i] - self.centre[..., i] for i in range(3)))
        beyond = [jnp.maximum(jnp.abs(a) - self.half[..., i], 0) for i, a in enumerate(off)]
        return jnp.where(self.there, length(beyond), jnp.inf)

    def kept(self) -> "Boxes":
        """The same boxes; those that are not there are points, a thousand kilometres below."""
        here = self.there[..., None]
        below = jnp.array([[0.0, 0.0, -GONE]], self.centre.dtype)
        centre = jnp.where(here, self.centre, below)
        return replace(self, centre=centre, half=jnp.where(here, self.half, 0))


def inside(axes: tuple[Array, ...], v: Vec) -> Vec:
    """A vector of space in the frames of boxes, whose `Boxes.axes` these are."""
    x, y, z = v
    if len(axes) == 2:
        c, s = axes
        return c * x + s * y, c * y - s * x, z
    a = axes
    return tuple(a[i] * x + a[i + 1] * y + a[i + 2] * z for i in (0, 3, 6))


def outside(axes: tuple[Array, ...], v: Vec) -> Vec:
    """A vector of the frames of boxes, in space."""
    x, y, z = v
    if len(axes) == 2:
        c, s = axes
        return c * x - s * y, s * x + c * y, z
    a = axes
    return tuple(a[i] * x + a[i + 3] * y + a[i + 6] * z for i in range(3))


@pytree
class Rods:
    """M capsules; one of no length is a ball, one with a radius below 0 is not there."""

    start: Array  # [M, 3] one end, m
    end: Array  # [M, 3] the other
    radius: Array  # [M] m


@pytree
class Planes:
    """K planes normal . x = height, seen from either side."""

    normal: Array  # [K, 3] unit vectors
    height: Array  # [K] m


@pytree
class Solids:
    """Boxes, capsules and planes, numbered in this order."""

    boxes: Boxes
    rods: Rods | None = None
    planes: Planes | None = None

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many boxes, capsules and planes there are, those that are not there too."""
        rods = 0 if self.rods is None else self.rods.radius.shape[-1]
        planes = 0 if self.planes is None else self.planes.height.shape[-1]
        return self.boxes.half.shape[-2], rods, planes
