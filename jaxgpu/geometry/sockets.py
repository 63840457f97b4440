"""Blocks with a blind hole from above, by their exact signed distance.

The origin is the center of a block's underside, z points up, and the hole is about the z axis. Away
from the opening the distance is max(block, -hole), which is exact there. Straight above the opening
there is no block below, so the nearest point is on the rim or on the hole's floor.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree

from .sdf import Box
from .vectors import Vec, length


@pytree
class RoundSocket:
    """A round block with a round hole.

    >>> socket = RoundSocket(0.0041, 0.023, 0.02, 0.028)
    >>> round(float(socket.distance(tuple(jnp.array([0.001, 0.0, 0.01])))), 4)
    0.0031
    """

    radius: Array | float = number(above=0, unit="m", one=True)  # [] radius of the hole
    depth: Array | float = number(above=0, unit="m", one=True)  # [] depth of the hole
    outer: Array | float = number(above=0, unit="m", one=True)  # [] radius of the block
    height: Array | float = number(above=0, unit="m", one=True)  # [] height of the block

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        out = length(x[:2])
        block = Box((self.outer, 0.5 * self.height)).distance((out, x[2] - 0.5 * self.height))
        return _subtract_blind_hole(block, (self.radius - out,), x[2], self.height, self.depth)


@pytree
class SquareSocket:
    """A rectangular block with a rectangular hole.

    >>> socket = SquareSocket((0.004, 0.003), 0.023, (0.02, 0.02), 0.028)
    >>> round(float(socket.distance(tuple(jnp.array([0.001, 0.0, 0.02])))), 4)
    0.003
    """

    half: Any = number(above=0, unit="m")  # [2] half widths of the hole
    depth: Array | float = number(above=0, unit="m", one=True)  # [] depth of the hole
    outer: Any = number(above=0, unit="m")  # [2] half widths of the block
    height: Array | float = number(above=0, unit="m", one=True)  # [] height of the block

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m."""
        middle = (x[0], x[1], x[2] - 0.5 * self.height)
        block = Box((self.outer[0], self.outer[1], 0.5 * self.height)).distance(middle)
        walls = tuple(self.half[i] - jnp.abs(x[i]) for i in range(2))
        return _subtract_blind_hole(block, walls, x[2], self.height, self.depth)


def _subtract_blind_hole(block: Array, walls: Vec, z: Array, height: Any, depth: Any) -> Array:
    """Return the distance to a block with a hole, from distances to the block and its walls, m."""
    floor = z - (height - depth)
    room = floor  # distance to the nearest side of the hole, for points inside it
    for wall in walls:
        room = jnp.minimum(room, wall)
    beyond = length([jnp.maximum(-a, 0) for a in (*walls, floor)])
    hole = jnp.where(room < 0, beyond, -room)
    above = z - height
    rim = floor
    for wall in walls:
        rim = jnp.minimum(rim, length((wall, above)))
    over = above > 0
    for wall in walls:
        over = over & (wall > 0)
    return jnp.where(over, rim, jnp.maximum(block, -hole))
