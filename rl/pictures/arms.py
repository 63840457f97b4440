"""Arms and goals of the surgical tasks as capsules, for pictures."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.render import Scene
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

from ..envs.surgical.arms import Arm, posture


def arm(arm: Arm, q: Array, goal: Array, near: Array, radius: Array | float) -> Scene:
    """An arm of capsules, its last link thinner, and a ball: orange, and green when `near`.

    Args:
        arm: its kinematics.
        q: joints, [J].
        goal: the ball's centre, [3] m.
        near: [] bool.
        radius: of the links, m.
    """
    points = posture(arm, q)
    base = jnp.zeros((1, 3), q.dtype)
    start = jnp.concatenate([base, points[:-1], goal[None]])
    end = jnp.concatenate([points, goal[None]])
    links = jnp.full(len(points), radius, q.dtype).at[-1].set(0.6 * radius)
    steel = jnp.tile(jnp.array([STEEL], q.dtype), (len(points), 1))
    steel = steel.at[-1].set(jnp.array(BLUE, q.dtype))
    ball = jnp.where(near, jnp.array(GREEN), jnp.array(ORANGE))
    colour = jnp.concatenate([steel, ball.astype(q.dtype)[None]])
    width = jnp.append(links, jnp.asarray(1.3 * radius, q.dtype))
    floor, tile = jnp.asarray(-55 * radius, q.dtype), jnp.asarray(10 * radius, q.dtype)
    return Scene(start, end, width, colour, floor, tile)
