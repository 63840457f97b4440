"""Pictures of the study: learning curves, and a film of the arm."""

import base64
import io
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import rl
from jaxgpu.physics.continuum.render import Camera
from jaxgpu.report import Figure
from jaxgpu.rl import render
from jaxgpu.studies.surgical_reach.races import HORIZON, played

COLOURS = {"PPO": "#1f6fb4", "SHAC": "#c8553d", "ES": "#5b8e7d"}
INKS = (render.STEEL, render.BLUE, render.ORANGE, render.GREEN, render.SKY)
GOALS, EVERY, SIZE = 3, 3, 200  # in the film: goals, steps a frame, pixels


def curves(steps: dict[str, np.ndarray], shares: dict[str, np.ndarray], errors: dict) -> Any:
    """Share of goals reached [M, 3] and errors [M, seeds, goals] in mm, over steps [M]."""
    import matplotlib.pyplot as plt

    drawing, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), constrained_layout=True)
    for name, x in steps.items():
        middle, low, high = 100 * shares[name].T
        left.plot(x, middle, color=COLOURS[name], lw=1.6, label=name)
        left.fill_between(x, low, high, color=COLOURS[name], alpha=0.2, lw=0)
        by_seed = np.median(errors[name], 2)
        right.plot(x, np.median(by_seed, 1), color=COLOURS[name], lw=1.6, label=name)
        right.fill_between(x, by_seed.min(1), by_seed.max(1), color=COLOURS[name], alpha=0.2, lw=0)
    left.set(ylabel="goals reached to 5 mm, %", ylim=(-3, 103))
    right.set(ylabel="median error at the end, mm", yscale="log")
    right.axhline(5, color="k", lw=0.6, ls=":")
    for axes in (left, right):
        axes.set(xscale="log", xlabel="steps of environments")
        axes.spines[["top", "right"]].set_visible(False)
    right.legend(frameon=False)
    return drawing


def film(env: rl.Reach, policy: Any, key: Array, caption: str) -> Figure:
    """The arm reaching for one goal after the other, drawn on the device."""
    keys = jax.random.split(key, GOALS)
    q, goal, distance = jax.jit(jax.vmap(lambda key: played(env, policy, key)))(keys)
    length = 2 * HORIZON // 3  # it is there long before the end
    frames = lambda x: x[:, :length:EVERY].reshape(-1, *x.shape[2:])
    goal = jnp.repeat(goal, frames(distance).size // GOALS, axis=0)
    camera = Camera(
        *((0.27, -0.33, 0.03), (0.0, 0.0, -0.11), (0.0, 0.0, 1.0), 0.58), width=SIZE, height=SIZE
    )

    def draw(row: tuple[Array, Array, Array]) -> Array:
        scene = render.arm(env.arm, row[0], row[1], row[2] < env.tolerance, 0.006)
        return jnp.round(255 * render.picture(scene, camera)).astype(jnp.uint8)

    images = jax.jit(lambda rows: jax.lax.map(draw, rows))((frames(q), goal, frames(distance)))
    return Figure(caption, "image/gif", base64.b64encode(_gif(np.asarray(images))).decode())


def _gif(images: np.ndarray) -> bytes:
    """A film of 8-bit images [T, H, W, 3] in shades of the scene's own colours.

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
    first.save(file, format="GIF", save_all=True, append_images=rest, duration=90, loop=0)
    return file.getvalue()
