"""Ice cream: guide a nozzle so that its output on a wafer matches a demonstrated heap.

After FluidLab's IceCreamStatic (Xian et al. 2023, arXiv:2303.02346): the nozzle emits ice cream at
a constant rate, the wafer is fixed, and l = mean |x - x*(t)|^2 of the emitted material, portion by
portion. The demonstration lays a spiral that narrows upwards, in 2-D a zigzag. Here ice cream is a
solid with a yield stress (von Mises); the wafer is a dish, FluidLab's a cone.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Collider, Grid, Injector, Scene, VonMises

from ...environment import register
from .inflow import empty_body, nozzle_layer
from .matching import MatchGoal
from .shapes import glass
from .task import MatterTask
from .workspace import BoxWorkspace

WIDTH, HEIGHT = 0.096, 0.108  # m, of the box
DISH = 0.004, 0.024, 0.006  # m: half the depth, radius and wall thickness of the wafer
LOW = 0.016  # m, height of the center of the wafer's inside
NOZZLE, OPENING = 0.012, 0.006  # m, half height and half width
YOUNG, YIELD, DENSITY = 8e3, 120.0, 550.0  # Pa, Pa, kg/m^3
OUT = 0.06  # m/s, of ice cream at the nozzle
FRAME, SPEED = 0.04, 0.15  # s, m/s
TURNS, WIDE, RISE = 2.5, 0.015, 0.03  # of the demonstration; its initial radius and its rise, m


@register("matter/ice-cream-static")
def make_ice_cream_static(size: str = "small", **parameters: Any) -> MatterTask:
    """Make the task of dispensing ice cream; `size` is "small" (2-D, 1.8 s) or "full" (3.6 s)."""
    d, cells, frames, substeps = {"small": (2, 32, 45, 100), "full": (3, 64, 90, 200)}[size]
    dx = WIDTH / cells
    grid = Grid(dx, (cells, cells * 9 // 8, cells)[:d])
    spacing = dx / 2
    place = lambda x, y, z: (x, y, z)[:d]
    middle = WIDTH / 2
    demo, start = _spiral_actions(d, frames)
    tip = LOW + DISH[0] + 0.008  # initial height of the nozzle's opening
    nozzle = Collider(
        sdf.Box((OPENING, NOZZLE)) if d == 2 else sdf.Cylinder(NOZZLE, OPENING, axis=1),
        place(middle + start, tip + NOZZLE, middle),
    )
    wafer = Collider(glass(d, *DISH), place(middle, LOW, middle), stick=True)
    layer = nozzle_layer(d, OPENING, spacing, 1, -NOZZLE - dx)
    interval = spacing / OUT
    solid = VonMises(YOUNG, 0.3, YIELD)
    cream = empty_body(layer, solid, DENSITY, spacing, frames * FRAME / interval)
    source = Injector(layer, place(0.0, -OUT, 0.0), interval, body=0, tool=0)
    gravity = (0.0, -9.81, 0.0)[:d]
    scene = Scene(
        (cream,),
        grid,
        gravity=gravity,
        colliders=(nozzle, wafer),
        dt=jnp.float32(FRAME / substeps),
        sources=(source,),
    )
    lower = place(0.02, tip + NOZZLE, 0.02)
    upper = place(WIDTH - 0.02, HEIGHT - NOZZLE, WIDTH - 0.02)
    return MatterTask(
        scene.prepare(),
        MatchGoal(demo, FRAME, every=1 if d == 2 else 8),
        speed=(SPEED,) * d,
        workspace=BoxWorkspace(lower, upper),
        max_steps=frames,
        substeps=substeps,
        controls=("vx", "vy", "vz")[:d],
        body_names=("cream",),
        **parameters,
    )


def _spiral_actions(d: int, frames: int) -> tuple[np.ndarray, float]:
    """Return actions [T, D] along a spiral that narrows and rises, and its starting x, m."""
    t = np.linspace(0, 1, frames + 1)
    radius, angle = WIDE * (1 - 0.9 * t), 2 * np.pi * TURNS * t
    path = np.stack([radius * np.cos(angle), RISE * t, radius * np.sin(angle)][:d], 1)
    return (np.diff(path, axis=0) / (FRAME * SPEED)).astype(np.float32), WIDE
