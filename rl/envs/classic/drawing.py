"""Rendering of the classic tasks as capsules: x to the right, z up, lengths in m."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.render import Capsules
from jaxgpu.render.capsules import GREEN, ORANGE

# ends (x, z) in m, radius in m, and color
type Rod = tuple[tuple[Any, Any], tuple[Any, Any], float, Any]


def goal_color(reached: Array) -> Array:
    """Return the color [3] of a goal: orange, and green once it is reached."""
    return jnp.where(reached, jnp.array(GREEN), jnp.array(ORANGE))


def draw_rods(rods: list[Rod], floor: float, tile: float) -> Capsules:
    """Return the rods as capsules above a floor at height `floor`, m, with tiles of `tile` m."""
    place = lambda x, z: jnp.stack([jnp.asarray(q, jnp.float32) for q in (x, 0.0, z)])
    start = jnp.stack([place(*rod[0]) for rod in rods])
    end = jnp.stack([place(*rod[1]) for rod in rods])
    radius = jnp.array([rod[2] for rod in rods], jnp.float32)
    colour = jnp.stack([jnp.asarray(rod[3], jnp.float32) for rod in rods])
    return Capsules(
        start=start,
        end=end,
        radius=radius,
        colour=colour,
        floor=jnp.float32(floor),
        tile=jnp.float32(tile),
    )
