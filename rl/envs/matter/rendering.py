"""Pictures of a task: matter in colours, tools of glass; what is plane is shown as a slab."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.continuum import State
from jaxgpu.physics.continuum.tools.collide import Tool
from jaxgpu.render import Camera, Look, picture, points

from .shapes import Prism
from .task import Matter

COLOURS = {
    "milk": (0.93, 0.90, 0.84),
    "water": (0.16, 0.46, 0.80),
    "coffee": (0.36, 0.20, 0.10),
    "duck": (0.95, 0.75, 0.15),
    "cream": (0.95, 0.80, 0.78),
}
SLICES = 6  # of a slab


def render(env: Matter, matter: State, width: int = 400, height: int = 300) -> Array:
    """An image [height, width, 3] of the matter and tools of a task, in 0 ... 1. Pure; `jit` it."""
    grid, d = env.scene.grid, len(env.scene.grid.cells)
    size = np.asarray(grid.cells) * grid.dx
    middle = np.append(np.asarray(grid.lower) + size / 2, [0.0])[:3]
    spacing, thick = grid.dx / 2, grid.dx / 2 * SLICES
    x = points(matter)
    filled = jnp.concatenate([b.m.ravel() > 0 for b in matter.bodies])
    paint = jnp.concatenate(
        [
            jnp.zeros((b.m.size, 3)) + jnp.array([COLOURS[name]])
            for b, name in zip(matter.bodies, env.body_names)
        ]
    )
    if d == 2:
        depths = (np.arange(SLICES) - (SLICES - 1) / 2) * spacing
        x = jnp.concatenate([x + jnp.array([[0.0, 0.0, z]]) for z in depths])
        paint, filled = jnp.tile(paint, (SLICES, 1)), jnp.tile(filled, SLICES)
    away = 1.65 * max(size[0] * height / width, size[1])
    eye = middle + away * np.array(env.view_direction)
    camera = Camera(eye, middle, angle=0.62, width=width, height=height)
    pixels = height / 2 / np.tan(0.31) / away
    look = Look(
        jnp.where(filled, 1.15 * spacing, 0.0),
        reach=int(np.ceil(1.4 * spacing * pixels)) + 1,
        smoothing=10,
    )
    tools = [_solid(c.shape, t, thick) for c, t in zip(env.scene.colliders, matter.tools)]
    low = float(np.asarray(grid.lower)[1])
    return picture(camera, x, paint, look, tools=tools, floor=low, far=4 * float(away))


def _solid(shape: Any, tool: Tool, thick: float) -> tuple[Any, Tool]:
    """A tool in space: one of the plane becomes a prism."""
    if tool.x.shape == (3,):
        return shape, tool
    turn = jnp.stack([jnp.cos(tool.turn[0] / 2), *jnp.zeros(2), jnp.sin(tool.turn[0] / 2)])
    flat = lambda a: jnp.append(a, jnp.zeros(1, a.dtype))
    still = jnp.zeros(3, tool.x.dtype)
    return Prism(shape, 0.5 * thick), Tool(flat(tool.x), turn, still, still)
