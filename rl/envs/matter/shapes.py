"""Shapes of the tasks' tools, in 2-D and 3-D."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import sdf
from jaxgpu.geometry.vectors import Vec
from jaxgpu.inputs.fields import number, pytree


@pytree
class Prism:
    """Plane shape of thickness 2 `half` along z, which renders a 2-D tool in 3-D."""

    shape: Any  # in 2-D
    half: Array | float = number(above=0, unit="m")  # [] m

    def distance(self, x: Vec) -> Array:
        """Return the distance from the surface, m; a lower bound beyond the edges."""
        across = self.shape.distance(x[:2])
        along = jnp.abs(x[2]) - self.half
        return jnp.maximum(across, along)


def glass(d: int, half: float, radius: float, wall: float) -> Any:
    """Return a vessel open at the top, with inner half height `half` and inner `radius`, m.

    The origin is the center of the inside; walls and bottom are `wall` thick.
    """
    solid = sdf.Box if d == 2 else lambda half: sdf.Cylinder(half[1], half[0], axis=1)
    outer = sdf.Moved(solid((radius + wall, half + wall / 2)), _vertical_offset(d, -wall / 2))
    inner = sdf.Moved(solid((radius, half + wall)), _vertical_offset(d, wall))
    return sdf.Intersection((outer, sdf.Complement(inner)))


def _vertical_offset(d: int, y: float) -> tuple[float, ...]:
    return (0.0, y, 0.0)[:d]
