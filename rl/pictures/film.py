"""Films of tasks with bodies: what is there at a state, drawn on the device, as images."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.render import Camera, Scene
from jaxgpu.render.capsules import BLUE, STEEL

from ..envs.surgical.arms import PSM, place
from ..envs.surgical.handling import FLOOR, Handling
from . import stage
from .arms import arm


def scene(env: Any, state: Any, radius: float = 0.006) -> Scene:
    """Arm, goal and objects of a surgical task at one state, links of `radius`, m; or a classic's.

    The goal is orange, and green once the task counts as done there.
    """
    if (classic := stage.scene(env, state)) is not None:
        return classic
    if isinstance(env, Handling):
        return _handled(env, state)
    if callable(getattr(env, "goal", None)):
        goal = env.goal(state)
    else:
        goal = state.goal if hasattr(state, "goal") else state.target
    tip, _ = place(env.arm, state.q)
    near = jnp.sum((tip - goal) ** 2) < env.tolerance**2
    near = env.there(state) if hasattr(env, "there") else near
    return arm(env.arm, state.q, goal, near, radius)


def film(env: Any, states: Any, camera: Camera, radius: float = 0.006) -> np.ndarray:
    """8-bit images [T, H, W, 3] of the states [T, ...] of a surgical or classic task."""

    def draw(state: Any) -> Array:
        image = scene(env, state, radius).picture(camera)
        return jnp.round(255 * image).astype(jnp.uint8)

    return np.asarray(jax.jit(lambda states: jax.lax.map(draw, states))(states))


def _handled(env: Handling, state: Any) -> Scene:
    """The arm with its jaw, the object in blue, what stands around in steel."""
    drawn = arm(PSM, env.joints(state), state.goal, env.there(state), 0.004)
    yaw_axis = state.tip + jnp.array([0.0, 0.0, PSM.tip[1]])
    part = jnp.stack([jnp.cos(state.yaw), jnp.sin(state.yaw), jnp.zeros_like(state.yaw)])
    apart = jnp.where(state.closed, 0.0008, 0.004) * part
    jaw_start = jnp.stack([yaw_axis, yaw_axis])
    jaw_end = jnp.stack([state.tip - apart, state.tip + apart])
    links = drawn.radius.at[-2].set(0.001)  # the jaw takes the place of the last link
    start, end, radius, own = env.solids(state)
    colour = jnp.where(own[:, None], jnp.array([BLUE]), jnp.array([STEEL]))
    return Scene(
        jnp.concatenate([drawn.start, jaw_start, start]),
        jnp.concatenate([drawn.end, jaw_end, end]),
        jnp.concatenate([links.at[-1].set(0.002), jnp.full(2, 0.0012), radius]),
        jnp.concatenate([drawn.colour, jnp.array([STEEL] * 2), colour]),
        jnp.asarray(FLOOR, jnp.float32),
        jnp.asarray(0.02, jnp.float32),
    )
