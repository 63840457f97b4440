"""Arms, goals and objects of the surgical tasks as capsules, for pictures."""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

from ..envs.surgical.arms import PSM, Arm
from ..envs.surgical.kinematics import forward_kinematics, frame_origins

if TYPE_CHECKING:
    from ..envs.surgical.pick_place import PickPlace


def arm(arm: Arm, q: Array, goal: Array, near: Array, radius: Array | float) -> Capsules:
    """An arm of capsules, its last link thinner, and a ball: orange, and green when `near`.

    Args:
        arm: its kinematics.
        q: joints, [J].
        goal: the ball's centre, [3] m.
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


def reaching(env: Any, state: Any, radius: Array | float) -> Capsules:
    """The arm and the goal of a task that moves joints, links of `radius`, m.

    The goal is orange, and green once the task counts as done there.
    """
    goal = env.goal(state) if callable(getattr(env, "goal", None)) else state.goal
    tip, _ = forward_kinematics(env.arm, state.q)
    near = jnp.sum((tip - goal) ** 2) < env.tolerance**2
    near = env.is_success(state) if hasattr(env, "is_success") else near
    return arm(env.arm, state.q, goal, near, radius)


def grasping(env: "PickPlace", state: Any, floor: float) -> Capsules:
    """The PSM with its jaw, the object in blue, what stands around in steel."""
    drawn = arm(PSM, env.joints(state), state.goal, env.is_success(state), 0.004)
    yaw_axis = state.tip + jnp.array([0.0, 0.0, PSM.tip[1]])
    part = jnp.stack([jnp.cos(state.yaw), jnp.sin(state.yaw), jnp.zeros_like(state.yaw)])
    opening = jnp.where(state.closed, 0.0008, 0.004) * part
    jaw_start = jnp.stack([yaw_axis, yaw_axis])
    jaw_end = jnp.stack([state.tip - opening, state.tip + opening])
    links = drawn.radius.at[-2].set(0.001)  # the jaw takes the place of the last link
    start, end, radius, own = env.solids(state)
    colour = jnp.where(own[:, None], jnp.array([BLUE]), jnp.array([STEEL]))
    return Capsules(
        start=jnp.concatenate([drawn.start, jaw_start, start]),
        end=jnp.concatenate([drawn.end, jaw_end, end]),
        radius=jnp.concatenate([links.at[-1].set(0.002), jnp.full(2, 0.0012), radius]),
        colour=jnp.concatenate([drawn.colour, jnp.array([STEEL] * 2), colour]),
        floor=jnp.asarray(floor, jnp.float32),
        tile=jnp.asarray(0.02, jnp.float32),
    )
