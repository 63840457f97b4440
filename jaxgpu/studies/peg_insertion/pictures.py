"""Video of the hand at work, next to the tactile fields of its pads."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import report
from jaxgpu.render import Camera
from jaxgpu.report import Figure
from jaxgpu.rl.animation import render_frames as on_device
from jaxgpu.rl.envs.touch import TouchTask, observations
from jaxgpu.studies.mobile_pick.success import record_episode

SIZE, EVERY, STAY = 360, 4, 60  # pixels; steps of 1/60 s per frame; steps after a success
PRESSED, SHEARED = 6.0, 3.0  # observed forces at which a color has 3/4 of its range


CAPTION = (
    "The first seed in a new episode. Left: the hand and the peg, orange, green once it is in "
    "place. Right: forces on the taxels of both pads, one above the other; brightness is "
    "pressure, red and blue are shear across and along the fingers. "
)
INPUTS_TEXT = "The policy observes the state vector, not these forces."


def video(env: TouchTask, policy: Any, key: Array, told: str = INPUTS_TEXT) -> Figure:
    """Make a video of one episode; the caption says which observations the policy uses."""
    states = jax.device_get(record_episode(env, policy, key, env.max_steps + env.end_steps))
    shown = slice(0, _num_frames(env, states), EVERY)
    states = jax.tree.map(lambda x: x[shown], states)
    beside = on_device(env, states, outlook(jax.tree.map(lambda x: x[0], states)))
    felt = np.asarray(jax.jit(jax.vmap(lambda state: pads(env, state)))(states))
    return report.video(np.concatenate([beside, felt], 2), CAPTION + told, EVERY / 60)


def _num_frames(env: TouchTask, states: Any) -> int:
    """Return the number of states to show: until the peg remains in place, plus one second."""
    there = np.asarray(jax.jit(jax.vmap(env.is_success))(states))
    away = np.flatnonzero(~there)
    return int(away[-1]) + 1 + STAY if len(away) else STAY


def outlook(state: Any) -> Camera:
    """Return a camera next to the table that shows hand and fixture."""
    place, hand = np.asarray(state.grasp.fixture), np.asarray(state.grasp.hand)
    middle = 0.5 * (place + hand) + [0.0, 0.0, 0.03]  # the hand ends some 8 cm above the place
    wide = 0.23 + np.linalg.norm(hand - place)
    return Camera(
        eye=tuple(middle + wide * np.array([0.5, -1.0, 0.5])),
        target=tuple(middle),
        up=(0.0, 0.0, 1.0),
        angle=0.6,
        width=SIZE,
        height=SIZE,
    )


def pads(env: TouchTask, state: Any) -> Array:
    """Return the image [SIZE, SIZE, 3] of both tactile fields, one above the other, uint8.

    A taxel is a rectangle: brightness shows pressure, red and blue show shear across and along the
    finger. Fingertips are at the bottom.
    """
    rows, columns = env.grid
    field = observations.field(state.grasp.field, env.grid).reshape(rows, columns, 2, 3)
    field = field.transpose(2, 0, 1, 3).reshape(2 * rows, columns, 3)
    shear = 0.5 + 0.5 * jnp.tanh(field[..., :2] / SHEARED)
    press = jnp.tanh(field[..., 2:] / PRESSED)
    colour = press * jnp.concatenate([shear[..., :1], 0.5 + 0 * press, shear[..., 1:]], -1)
    up = colour.reshape(2, rows, columns, 3)[:, ::-1].reshape(colour.shape)
    i = jnp.arange(SIZE) * (2 * rows) // SIZE
    k = jnp.arange(SIZE) * columns // SIZE
    return jnp.round(255 * up[i][:, k]).astype(jnp.uint8)
