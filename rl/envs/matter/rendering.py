"""Rendering of a task: coloured materials, tools of glass; 2-D scenes appear as a slab."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics.continuum import Grid, Scene, State
from jaxgpu.physics.continuum.pictures import points
from jaxgpu.physics.continuum.tools.contact import Tool
from jaxgpu.render import Balls, Camera, ParticleStyle

from .shapes import Prism

COLORS = {
    "milk": (0.93, 0.90, 0.84),
    "water": (0.16, 0.46, 0.80),
    "coffee": (0.36, 0.20, 0.10),
    "duck": (0.95, 0.75, 0.15),
    "cream": (0.95, 0.80, 0.78),
}
SLICES = 6  # of a slab
FIELD_ANGLE = 0.62  # rad, of the field of view


def fit_camera(grid: Grid, direction: tuple[float, ...], width: int, height: int) -> Camera:
    """Return the camera in `direction` from the center whose image contains the whole grid."""
    middle, away = _grid_center(grid), _camera_distance(grid, width, height)
    eye = middle + away * np.array(direction)
    return Camera(eye, middle, angle=FIELD_ANGLE, width=width, height=height)


def draw_matter(
    simulation: Scene, matter: State, body_names: tuple[str, ...], camera: Camera
) -> Balls:
    """Return particles and tools as balls and solids, resolved for a camera of `fit_camera`."""
    grid, d = simulation.grid, len(simulation.grid.cells)
    spacing, thick = grid.dx / 2, grid.dx / 2 * SLICES
    x = points(matter)
    filled = jnp.concatenate([b.m.ravel() > 0 for b in matter.bodies])
    paint = jnp.concatenate(
        [
            jnp.zeros((b.m.size, 3)) + jnp.array([COLORS[name]])
            for b, name in zip(matter.bodies, body_names)
        ]
    )
    if d == 2:
        depths = (np.arange(SLICES) - (SLICES - 1) / 2) * spacing
        x = jnp.concatenate([x + jnp.array([[0.0, 0.0, z]]) for z in depths])
        paint, filled = jnp.tile(paint, (SLICES, 1)), jnp.tile(filled, SLICES)
    away = _camera_distance(grid, camera.width, camera.height)
    pixels = camera.height / 2 / np.tan(FIELD_ANGLE / 2) / away
    look = ParticleStyle(
        jnp.where(filled, 1.15 * spacing, 0.0),
        reach=int(np.ceil(1.4 * spacing * pixels)) + 1,
        smoothing=10,
    )
    solids = [_tool_solid(c.shape, t, thick) for c, t in zip(simulation.colliders, matter.tools)]
    low = float(np.asarray(grid.lower)[1])
    return Balls(x, paint, look, tuple(solids), floor=low, far=4 * float(away))


def _grid_center(grid: Grid) -> np.ndarray:
    """Return the center of a grid, [3] m."""
    return np.append(np.asarray(grid.lower) + np.asarray(grid.cells) * grid.dx / 2, [0.0])[:3]


def _camera_distance(grid: Grid, width: int, height: int) -> float:
    """Return the distance at which the image contains the whole grid, m."""
    size = np.asarray(grid.cells) * grid.dx
    return 1.65 * max(size[0] * height / width, size[1])


def _tool_solid(shape: Any, tool: Tool, thick: float) -> tuple[Any, Array, Array]:
    """Return shape, position and orientation of a tool in 3-D; a 2-D tool becomes a prism."""
    if tool.x.shape == (3,):
        return shape, tool.x, tool.turn
    turn = jnp.stack([jnp.cos(tool.turn[0] / 2), *jnp.zeros(2), jnp.sin(tool.turn[0] / 2)])
    return Prism(shape, 0.5 * thick), jnp.append(tool.x, jnp.zeros(1, tool.x.dtype)), turn
