"""Films of tasks with bodies: what is there at a state, drawn on the device, written as GIF."""

import io
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.render import Camera

from ..envs.surgical.arms import PSM
from ..envs.surgical.kinematics import forward_kinematics
from ..envs.surgical.pick_place import FLOOR, PickPlace
from . import render, stage

INKS = (render.STEEL, render.BLUE, render.ORANGE, render.GREEN, render.SKY)


def scene(env: Any, state: Any, radius: float = 0.006) -> render.Scene:
    """Arm, goal and objects of a surgical task at one state, links of `radius`, m; or a classic's.

    The goal is orange, and green once the task counts as done there.
    """
    if (classic := stage.scene(env, state)) is not None:
        return classic
    if isinstance(env, PickPlace):
        return _handled(env, state)
    goal = env.goal(state) if callable(getattr(env, "goal", None)) else state.goal
    tip, _ = forward_kinematics(env.arm, state.q)
    near = jnp.sum((tip - goal) ** 2) < env.tolerance**2
    near = env.is_success(state) if hasattr(env, "is_success") else near
    return render.arm(env.arm, state.q, goal, near, radius)


def film(env: Any, states: Any, camera: Camera, radius: float = 0.006) -> np.ndarray:
    """8-bit images [T, H, W, 3] of the states [T, ...] of a surgical or classic task."""

    def draw(state: Any) -> Array:
        image = render.picture(scene(env, state, radius), camera)
        return jnp.round(255 * image).astype(jnp.uint8)

    return np.asarray(jax.jit(lambda states: jax.lax.map(draw, states))(states))


def gif(images: np.ndarray, pause: int = 90) -> bytes:
    """A film of images [T, H, W, 3], each shown for `pause` ms, in shades of the scene's colours.

    A palette of Pillow's own choice spends all colours on the grey of the floor.
    """
    from PIL import Image

    levels = np.linspace(0, 1, 42)[:, None]
    ramps = [np.outer(levels, 255 * np.array(ink)) for ink in (*INKS, (1, 1, 1))]
    paint = Image.new("P", (1, 1))
    paint.putpalette(np.concatenate(ramps).astype(np.uint8).ravel().tolist())
    first, *rest = [
        Image.fromarray(image).quantize(palette=paint, dither=Image.Dither.NONE) for image in images
    ]
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=rest, duration=pause, loop=0)
    return file.getvalue()


def _handled(env: PickPlace, state: Any) -> render.Scene:
    """The arm with its jaw, the object in blue, what stands around in steel."""
    arm = render.arm(PSM, env.joints(state), state.goal, env.is_success(state), 0.004)
    yaw_axis = state.tip + jnp.array([0.0, 0.0, PSM.tip[1]])
    part = jnp.stack([jnp.cos(state.yaw), jnp.sin(state.yaw), jnp.zeros_like(state.yaw)])
    apart = jnp.where(state.closed, 0.0008, 0.004) * part
    jaw_start = jnp.stack([yaw_axis, yaw_axis])
    jaw_end = jnp.stack([state.tip - apart, state.tip + apart])
    links = arm.radius.at[-2].set(0.001)  # the jaw takes the place of the last link
    start, end, radius, own = env.solids(state)
    colour = jnp.where(own[:, None], jnp.array([render.BLUE]), jnp.array([render.STEEL]))
    return render.Scene(
        jnp.concatenate([arm.start, jaw_start, start]),
        jnp.concatenate([arm.end, jaw_end, end]),
        jnp.concatenate([links.at[-1].set(0.002), jnp.full(2, 0.0012), radius]),
        jnp.concatenate([arm.colour, jnp.array([render.STEEL] * 2), colour]),
        jnp.asarray(FLOOR, jnp.float32),
        jnp.asarray(0.02, jnp.float32),
    )
