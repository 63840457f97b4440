"""Rendering of arms, goals and objects of the surgical tasks as capsules."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

from .arms import PSM, Arm
from .kinematics import forward_kinematics, frame_origins


def draw_arm(arm: Arm, q: Array, goal: Array, near: Array, radius: Array | float) -> Capsules:
    """Return the links of an arm, the last one thinner, and a ball: orange, green when `near`.

    Args:
        arm: its kinematics.
        q: joints, [J].
            goal: the ball's center, [3] m.
        near: [] bool.
        radius: of the links, m.
    """
    points = frame_origins(arm, q)
    base = jnp.zeros((1, 3), q.dtype)
    start = jnp.concatenate([base, points[:-1], goal[None]])
    end = jnp.concatenate([points, goal[None]])
    links = jnp.full(len(points), radius, q.dtype).at[-1].set(0.6 * radius)
    steel = jnp.tile(jnp.array([STEEL], q.dtype), (len(points), 1))
    steel = steel.at[-1].set(jnp.array(BLUE, q.dtype))
    ball = jnp.where(near, jnp.array(GREEN), jnp.array(ORANGE))
    colour = jnp.concatenate([steel, ball.astype(q.dtype)[None]])
    width = jnp.append(links, jnp.asarray(1.3 * radius, q.dtype))
    return Capsules(
        start=start,
        end=end,
        radius=width,
        colour=colour,
        floor=jnp.asarray(-55 * radius, q.dtype),
        tile=jnp.asarray(10 * radius, q.dtype),
    )


def draw_reach(
    arm: Arm, q: Array, goal: Array, tolerance: Array | float, radius: Array | float
) -> Capsules:
    """Return an arm and its goal, green if the tip is within `tolerance`, m, of it."""
    tip, _ = forward_kinematics(arm, q)
    near = jnp.sum((tip - goal) ** 2) < tolerance**2
    return draw_arm(arm, q, goal, near, radius)


def draw_grasp(
    drawn: Capsules,
    tip: Array,
    yaw: Array,
    closed: Array,
    solids: tuple[Array, Array, Array, Array],
    floor: float,
) -> Capsules:
    """Return a drawn PSM with its jaw, the object in blue, and the scene in steel.

    Args:
        drawn: the arm and the goal, of `draw_arm`.
        tip: of the jaw, [3] m.
        yaw: of the jaw about the vertical, [] rad.
        closed: [] bool.
            solids: starts and ends [K, 3] and radii [K], m, and a mask [K] of the object's.
        floor: its height, m.
    """
    yaw_axis = tip + jnp.array([0.0, 0.0, PSM.tip[1]])
    part = jnp.stack([jnp.cos(yaw), jnp.sin(yaw), jnp.zeros_like(yaw)])
    opening = jnp.where(closed, 0.0008, 0.004) * part
    jaw_start = jnp.stack([yaw_axis, yaw_axis])
    jaw_end = jnp.stack([tip - opening, tip + opening])
    links = drawn.radius.at[-2].set(0.001)  # the jaw replaces the last link
    start, end, radius, own = solids
    colour = jnp.where(own[:, None], jnp.array([BLUE]), jnp.array([STEEL]))
    return Capsules(
        start=jnp.concatenate([drawn.start, jaw_start, start]),
        end=jnp.concatenate([drawn.end, jaw_end, end]),
        radius=jnp.concatenate([links.at[-1].set(0.002), jnp.full(2, 0.0012), radius]),
        colour=jnp.concatenate([drawn.colour, jnp.array([STEEL] * 2), colour]),
        floor=jnp.asarray(floor, jnp.float32),
        tile=jnp.asarray(0.02, jnp.float32),
    )
