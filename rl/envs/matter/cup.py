"""A cup of coffee with milk and a stirrer, seen from above: the 2-D scene is its surface.

In 3-D the cup stands upright, the liquids rest in it under gravity and milk floats on top. Both
liquids have a high viscosity, so that they flow slowly (a Reynolds number near 1) and patterns
persist. They stick to cup and stirrer as viscous liquids do.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Collider, Grid, Liquid, Scene, fill_box

from .workspace import CylinderWorkspace

RADIUS, MIDDLE = 0.04, 0.048  # m, inner radius of the cup; its axis in a box 96 mm wide
ROD = 0.005  # m, radius of the stirrer
DEPTH, LAYER = 0.012, 0.004  # m, depth of the liquids, and of the milk on top
DENSITY, VISCOSITY = 1000.0, 1.0  # kg/m^3, Pa s
FRAME = 0.04  # s
SPEED = 0.15  # m/s, maximum speed of the stirrer

# Sound is ten times as fast as the stirrer, or as fast as the pressure at the cup's depth requires.
SIZES = {"small": (2, 32, 1.5, 50), "full": (3, 48, 2.0, 120)}  # dimensions, cells, m/s, substeps


def make_scene(
    size: str, start: Any, milk: Callable[[Any, Any], Any]
) -> tuple[Scene, dict[str, Any]]:
    """Return the scene, and the common parameters of all tasks of `MatterTask` in a cup.

    Args:
        size: "small" is 2-D, "full" is 3-D.
        start: initial position of the stirrer, relative to the axis, [2] m.
        milk: `milk(x, y)` returns where on the surface, relative to the axis, milk is.
    """
    d, cells, sound, substeps = SIZES[size]
    dx = 2 * MIDDLE / cells
    axes = (0, 1) if d == 2 else (0, 2)
    place = lambda x, y, z: (x, z) if d == 2 else (x, y, z)
    full = sdf.Ball(RADIUS) if d == 2 else sdf.Cylinder(1.0, RADIUS, axis=1)
    rod = sdf.Ball(ROD) if d == 2 else sdf.Capsule(DEPTH, ROD, axis=1)
    at = place(MIDDLE + start[0], DEPTH + ROD + 0.004, MIDDLE + start[1])
    centre = place(MIDDLE, 0.0, MIDDLE)
    upper = place(2 * MIDDLE, DEPTH, 2 * MIDDLE)
    wet = sdf.Intersection((sdf.Moved(full, centre), sdf.Complement(sdf.Moved(rod, at))))
    x = fill_box((0.0,) * d, upper, dx / 2, wet)
    white = milk(*(np.asarray(x)[:, i] - MIDDLE for i in axes))
    if d == 3:
        white &= np.asarray(x)[:, 1] > DEPTH - LAYER
    modulus = DENSITY * sound**2
    # A full plane has no free surface to separate at; its pressure is relative to that of the air.
    liquid = Liquid(modulus, VISCOSITY, 0.1 * modulus if d == 2 else 0.0, exponent=1.0)
    split = (np.flatnonzero(white), np.flatnonzero(~white))
    bodies = tuple(Body(x[i], liquid, (dx / 2) ** d, DENSITY) for i in split)
    tools = (
        Collider(rod, at, stick=True),
        Collider(sdf.Complement(full), centre, stick=True),
    )
    box = (cells,) * 2 if d == 2 else (cells, cells * 5 // 12, cells)
    gravity = () if d == 2 else (0.0, -9.81, 0.0)
    dt = jnp.float32(FRAME / substeps)
    shared = {
        "speed": (SPEED,) * 2,
        "workspace": CylinderWorkspace((MIDDLE, MIDDLE), RADIUS - ROD - 0.004, axes),
        "substeps": substeps,
        "controls": ("vx", "vy") if d == 2 else ("vx", "vz"),
        "body_names": ("milk", "coffee"),
        "view_direction": (0.18, 0.22, 1.0) if d == 2 else (0.0, 1.25, 0.5),
    }
    # The stirrer, not viscosity, drives the flow, so plain transfers suffice at half the cost.
    scene = Scene(bodies, Grid(dx, box), gravity=gravity, colliders=tools, dt=dt, sharp=False)
    return scene.prepare(), shared


def stroke_actions(*moves: tuple[float, float, int]) -> np.ndarray:
    """Return actions [T, 2] of straight strokes (fractions of the maximum velocity, frames)."""
    return np.concatenate([np.tile(np.array([[x, y]], np.float32), (n, 1)) for x, y, n in moves])
