"""Video of the robot in its house, next to its camera image."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import report
from jaxgpu.render import Camera, depth_image
from jaxgpu.report import Figure
from jaxgpu.rl.animation import render_frames as on_device
from jaxgpu.rl.envs.rearrange.robot.fetch import forward_kinematics
from jaxgpu.rl.envs.rearrange.tasks import HouseTask

from .success import record_episode

SIZE, EVERY, LONGEST = 360, 3, 240  # pixels; steps per frame; maximum steps of the video
NEAR, FAR = 0.3, 6.0  # distances shown white and black, m


CAPTION = (
    "The first seed in a new house. Left: the house from above without its ceiling, the object in "
    "orange. Right: depth image of the head camera, bright where it is near."
)


def video(env: HouseTask, policy: Any, key: Array) -> Figure:
    """Make a video of one episode, with two seconds after its end."""
    states = record_episode(env, policy, key, LONGEST)
    moved = np.flatnonzero(np.diff(np.asarray(states.t)))
    last = min(LONGEST, (int(moved[-1]) + 2 if moved.size else 1) + 10 * EVERY)
    states = jax.tree.map(lambda x: x[:last:EVERY], states)
    above = on_device(env, states, overview(env, jax.tree.map(lambda x: x[0], states)))
    seen = np.asarray(jax.jit(lambda s: jax.lax.map(lambda one: eye(env, one), s))(states))
    return report.video(np.concatenate([above, seen], 2), CAPTION, 0.1)


def overview(env: HouseTask, state: Any) -> Camera:
    """Return a camera above the house that shows all of it."""
    rooms = np.asarray(env.house_at(state).rooms)
    least, most = rooms[:, :2].min(0), rooms[:, 2:].max(0)
    middle, wide = (least + most) / 2, float((most - least).max())
    return Camera(
        eye=(middle[0], middle[1] - 0.6 * wide, 1.4 * wide),
        target=(middle[0], middle[1], 0.0),
        up=(0.0, 1.0, 0.0),
        angle=0.85,
        width=SIZE,
        height=SIZE,
    )


def eye(env: HouseTask, state: Any) -> Array:
    """Return the depth image [H, W, 3] of the head camera, uint8, brighter if closer."""
    camera = replace(env, pixels=SIZE).camera(forward_kinematics(state.joints))
    depth = depth_image(camera, env.house_at(state).solids(), far=FAR)
    share = jnp.clip((jnp.log(FAR) - jnp.log(depth)) / np.log(FAR / NEAR), 0, 1)
    return jnp.broadcast_to(jnp.round(255 * share)[..., None], (SIZE, SIZE, 3)).astype(jnp.uint8)
