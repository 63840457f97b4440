"""Figures of the study: learning curves and a video of the arm."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import report, rl
from jaxgpu.render import Camera
from jaxgpu.render.palette import BAND, GRAY, assign_colors, report_style
from jaxgpu.report import Figure
from jaxgpu.rl.animation import render_frames as on_device
from jaxgpu.rl.envs.surgical.reach import State

from .races import HORIZON, record_episode

COLORS = assign_colors(["PPO", "SHAC", "ES"])
GOALS, EVERY, SIZE = 3, 2, 480  # in the video: goals, steps per frame, pixels


@report_style
def curves(steps: dict[str, np.ndarray], shares: dict[str, np.ndarray], errors: dict) -> Any:
    """Plot shares of reached goals [M, 3] and errors [M, seeds, goals] in mm, over steps [M]."""
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.4))
    for name, x in steps.items():
        middle, low, high = 100 * shares[name].T
        left.plot(x, middle, color=COLORS[name], label=name)
        left.fill_between(x, low, high, color=COLORS[name], alpha=BAND, lw=0)
        by_seed = np.median(errors[name], 2)
        right.plot(x, np.median(by_seed, 1), color=COLORS[name], label=name)
        right.fill_between(x, by_seed.min(1), by_seed.max(1), color=COLORS[name], alpha=BAND, lw=0)
    left.set(ylabel="goals reached to 5 mm, %", ylim=(-3, 103))
    right.set(ylabel="median error, mm", yscale="log")
    right.axhline(5, color=GRAY, lw=0.8, ls=":")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="environment steps")
    right.legend()
    return drawing


def video(env: rl.Reach, policy: Any, key: Array, caption: str) -> Figure:
    """Make a video of the arm reaching for several goals, rendered on the device."""
    keys = jax.random.split(key, GOALS)
    q, goal, _ = jax.jit(jax.vmap(lambda key: record_episode(env, policy, key)))(keys)
    length = 2 * HORIZON // 3  # the goal is reached well before the end
    frames = lambda x: x[:, :length:EVERY].reshape(-1, *x.shape[2:])
    goal = jnp.repeat(goal, len(frames(q)) // GOALS, axis=0)
    camera = Camera(
        eye=(0.27, -0.33, 0.03),
        target=(0.0, 0.0, -0.11),
        up=(0.0, 0.0, 1.0),
        angle=0.58,
        width=SIZE,
        height=SIZE,
    )

    states = State(frames(q), jnp.zeros(len(goal), jnp.int32), goal)
    return report.video(on_device(env, states, camera), caption, 0.06)
