"""Shapes of the tasks' tools, in the plane and in space."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import sdf
from jaxgpu.geometry.vectors import Vec
from jaxgpu.inputs.fields import number, pytree


@pytree
class Prism:
    """A plane shape as thick as 2 `half` along z: what a task in the plane looks like in space."""

    shape: Any  # in 2-D
    half: Array | float = number(above=0, unit="m")  # [] m

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m; a lower bound beyond the edges."""
        across = self.shape.distance(x[:2])
        along = jnp.abs(x[2]) - self.half
        return jnp.maximum(across, along)


def glass(d: int, half: float, radius: float, wall: float) -> Any:
    """A vessel open at the top; `half` its height and `radius` its width, inside, m.

    The origin is the middle of the inside, and walls and bottom are `wall` thick.
    """
    solid = sdf.Box if d == 2 else lambda half: sdf.Cylinder(half[1], half[0], axis=1)
    outer = sdf.Moved(solid((radius + wall, half + wall / 2)), _up(d, -wall / 2))
    inner = sdf.Moved(solid((radius, half + wall)), _up(d, wall))
    return sdf.Intersection((outer, sdf.Outside(inner)))


def _up(d: int, y: float) -> tuple[float, ...]:
    return (0.0, y, 0.0)[:d]
