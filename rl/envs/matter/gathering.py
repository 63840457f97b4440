"""Gathering: push floating ducks along a tank with strokes of a plate.

After FluidLab's GatheringEasy (Xian et al. 2023, arXiv:2303.02346): l = mean |x - x_goal| of the
ducks' particles, along the tank only. Actions do not control the plate's height; it follows a
schedule: down in the water, up, and down again, so that every stroke can be followed by a return in
the air. The ducks are of elastic foam, where FluidLab's are rigid.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import sdf
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.continuum import (
    Body,
    Collider,
    Corotated,
    Grid,
    Liquid,
    Scene,
    State,
    fill_box,
)

from ...environment import register
from .task import MatterTask, Play, masked_mean
from .workspace import BoxWorkspace

LENGTH, DEPTH = 0.4, 0.056  # m, of the tank and of the water in it
DUCK, PLACES = 0.016, (0.11, 0.16)  # m, radius of the ducks, and their initial positions
GOAL = 0.3  # m
FOAM, YOUNG = 350.0, 4e3  # kg/m^3, Pa
SOUND = 5.0  # m/s, of the water
STROKE = ("down", 16), ("up", 4), ("high", 12), ("down again", 4)  # frames per stage
FRAME, SPEED, LIFT = 0.04, 0.25, 0.06  # s, m/s of the plate, m lifted


@pytree
class GatherGoal:
    """Goal of a body at a position along the first axis.

    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene
    >>> drops = (Body([[0.5, 0.4]], Liquid(), 1e-3), Body([[0.3, 0.4]], Liquid(), 1e-3))
    >>> start = Scene(drops, Grid(0.1, (10, 10))).init()
    >>> goal = GatherGoal(goal=0.2, tolerance=0.05)
    >>> of = goal.reference(start, None)
    >>> round(float(goal.loss(start, of)), 2), bool(goal.success(start, of))
    (0.1, False)
    """

    goal: Array | float = number(unit="m")  # [] m
    tolerance: Array | float = number(above=0, unit="m")  # [] m
    body: int = size(default=1, least=0)  # index in the scene

    def reference(self, state: State, play: Play) -> Any:
        """Return the mask of filled slots."""
        return state.bodies[self.body].m > 0

    def loss(self, state: State, reference: Any) -> Array:
        """Return the mean of |x - goal|, m."""
        return masked_mean(jnp.abs(state.bodies[self.body].x[:, 0] - self.goal), reference)

    def baseline(self, state: State, reference: Any) -> Array:
        """Return the loss at the start, m."""
        return self.loss(state, reference)

    def success(self, state: State, reference: Any) -> Array:
        """Return whether every particle is closer to the goal than `tolerance`."""
        far = jnp.abs(state.bodies[self.body].x[:, 0] - self.goal) > self.tolerance
        return ~jnp.any(far & reference)


@register("matter/gathering-easy")
def make_gathering_easy(size: str = "small", **parameters: Any) -> MatterTask:
    """Make the task of pushing two ducks in two strokes; `size` is "small" (2-D) or "full"."""
    d, cells, substeps = {"small": (2, 50, 60), "full": (3, 100, 120)}[size]
    dx = LENGTH / cells
    grid = Grid(dx, (cells, cells * 9 // 20, cells * 3 // 10)[:d])
    wide = grid.upper[-1]  # of the tank, in 3-D
    duck_shape = lambda i: sdf.Moved(sdf.Ball(DUCK), _duck_center(d, PLACES[i], i, wide))
    ducks = sdf.Union(tuple(duck_shape(i) for i in range(len(PLACES))))
    plate = Collider(sdf.Box((0.006, 0.03, 0.03)[:d]), (0.05, DEPTH + 0.004, wide / 2)[:d])
    wet = sdf.Complement(sdf.Union((ducks, sdf.Moved(plate.shape, plate.x))))
    spacing, volume = dx / 2, (dx / 2) ** d
    water = fill_box((0.0,) * d, (LENGTH, DEPTH, wide)[:d], spacing, wet)
    foam = fill_box((0.0,) * d, grid.upper, spacing, ducks)
    bodies = (
        Body(water, Liquid(1000.0 * SOUND**2, exponent=1.0), volume, 1000.0),
        Body(foam, Corotated(YOUNG, 0.3), volume, FOAM),
    )
    gravity = (0.0, -9.81, 0.0)[:d]
    dt = jnp.float32(FRAME / substeps)
    scene = Scene(bodies, grid, gravity=gravity, colliders=(plate,), dt=dt)
    script = _lift_schedule(d, 2)
    margin = (0.03, 0.0, 0.04)[:d]
    workspace = BoxWorkspace(margin, tuple(a - b for a, b in zip(grid.upper, margin)))
    return MatterTask(
        scene.prepare(),
        GatherGoal(GOAL, 0.06),
        speed=(SPEED,) * (d - 1),
        initial_plan=_stroke_actions(d, 2),
        script=script,
        workspace=workspace,
        max_steps=len(script),
        substeps=substeps,
        controls=("vx",) if d == 2 else ("vx", "vz"),
        body_names=("water", "duck"),
        **parameters,
    )


def _duck_center(d: int, x: float, i: int, wide: float) -> tuple[float, ...]:
    """Return the center of duck `i`: a third of it is under water, side by side in 3-D."""
    return (x, DEPTH + DUCK / 3, wide * (1 + i) / 3)[:d]


def _lift_schedule(d: int, strokes: int) -> np.ndarray:
    """Return the scheduled velocity [T, D] of the plate, m/s: zero in x, up and down in y."""
    y = {"down": 0.0, "up": 1.0, "high": 0.0, "down again": -1.0}
    height = np.concatenate([np.full(n, y[stage] * LIFT / (n * FRAME)) for stage, n in STROKE])
    one = np.stack([0 * height, height, 0 * height][:d], 1)
    return np.tile(one, (strokes, 1)).astype(np.float32)


def _stroke_actions(d: int, strokes: int) -> np.ndarray:
    """Return actions [T, A] that push half as far as needed and return in the air."""
    x = {"down": 0.4, "up": 0.0, "high": -0.5, "down again": 0.0}
    along = np.concatenate([np.full(n, x[stage]) for stage, n in STROKE])
    one = np.stack([along, 0 * along][: d - 1], 1)
    return np.tile(one, (strokes, 1)).astype(np.float32)
