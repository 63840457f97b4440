"""Transporting: push a heavy block with a jet of water, without gravity.

After FluidLab's task of that name (Xian et al. 2023, arXiv:2303.02346): l = |x - x_goal| of the
block + a small fraction of the mean 1-norm of the water's distance from it, which guides the jet to
the block before it first touches. The nozzle emits water at a constant rate, and water close to the
walls is removed. The block is truly rigid, FluidLab's made of connected particles.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import sdf
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.continuum import (
    Collector,
    Collider,
    Grid,
    Injector,
    Liquid,
    Scene,
    State,
)

from ...environment import register
from .inflow import empty_body, nozzle_layer
from .task import MatterTask, Play
from .workspace import BoxWorkspace

BOX = 0.36, 0.18  # m, length and height
BLOCK, PLACE, GOAL = 0.018, (0.12, 0.1), 0.27  # m: half its edge, its initial and goal position
# Density of the block, kg/m^3: lead; in 3-D titanium, because the jet is narrower than the block.
DENSITY = {2: 11340.0, 3: 4506.0}
NOZZLE, OPENING = 0.012, 0.009  # m: half length and half width
START, JET = (0.06, 0.06), 0.8  # m, of the nozzle, which points up; m/s
SOUND, WATER = 8.0, 1000.0  # m/s, kg/m^3
FRAME, MARGIN = 0.02, (0.018, 0.018, 0.006)  # s, m


@pytree
class TransportGoal:
    """Goal of a free tool at a position along the first axis, with water close to it.

    >>> TransportGoal(goal=0.3, tolerance=0.01).attraction
    0.1
    """

    goal: Array | float = number(unit="m")  # [] m
    tolerance: Array | float = number(above=0, unit="m")  # [] m
    attraction: Array | float = number(default=0.1, least=0)  # [] fraction of the water's distance
    tool: int = size(default=1, least=0)  # index in the scene

    def reference(self, state: State, play: Play) -> Any:
        """Return an empty tuple."""
        return ()

    def loss(self, state: State, reference: Any) -> Array:
        """Return |x - goal| + a fraction of the mean 1-norm of water's distance to the tool, m."""
        water, x = state.bodies[0], state.tools[self.tool].x
        filled = water.m > 0
        away = sum((jnp.abs(a - x[i]) for i, a in enumerate(water.x.T)), jnp.zeros_like(water.m))
        count = jnp.sum(filled).astype(x.dtype)
        distance = jnp.sum(jnp.where(filled, away, 0)) / jnp.maximum(count, 1)
        return jnp.abs(x[0] - self.goal) + self.attraction * distance

    def baseline(self, state: State, reference: Any) -> Array:
        """Return the distance from the goal at the start, m."""
        return jnp.abs(state.tools[self.tool].x[0] - self.goal)

    def success(self, state: State, reference: Any) -> Array:
        """Return whether the tool is closer to the goal than `tolerance`."""
        return jnp.abs(state.tools[self.tool].x[0] - self.goal) < self.tolerance


@register("matter/transporting")
def make_transporting(size: str = "small", **parameters: Any) -> MatterTask:
    """Make the task of pushing the block in 1 s; `size` is "small" (2-D) or "full"."""
    d, cells, substeps = {"small": (2, 60, 50), "full": (3, 120, 100)}[size]
    dx, frames = BOX[0] / cells, 48
    grid = Grid(dx, (cells, cells // 2, cells // 6)[:d])
    place = lambda x, y, z: (x, y, z)[:d]
    middle = tuple(0.5 * a for a in grid.upper)
    deep = middle[-1]
    nozzle = Collider(
        sdf.Box((NOZZLE, OPENING, OPENING)[:d]), place(*START, deep), turn=_quarter_turn(d)
    )
    layer = nozzle_layer(d, OPENING, dx / 2, 0, NOZZLE + dx)
    interval = dx / 2 / JET
    liquid = Liquid(WATER * SOUND**2, exponent=1.0)
    water = empty_body(layer, liquid, WATER, dx / 2, frames * FRAME / interval)
    inner = tuple(a - b for a, b in zip(middle, MARGIN))
    sources = (
        Injector(layer, place(JET, 0.0, 0.0), interval, body=0, tool=0),
        Collector(sdf.Complement(sdf.Moved(sdf.Box(inner), middle)), body=0),
    )
    scene = Scene(
        (water,),
        grid,
        colliders=(nozzle, _make_block(place(*PLACE, deep))),
        dt=jnp.float32(FRAME / substeps),
        sources=sources,
    )
    away = place(0.04, 0.04, 0.0)
    return MatterTask(
        scene.prepare(),
        TransportGoal(GOAL, 0.03),
        speed=(0.2, 0.2, 5.0),
        initial_plan=_rise_and_turn_actions(frames),
        workspace=BoxWorkspace(away, tuple(a - b for a, b in zip(grid.upper, away))),
        max_steps=frames,
        substeps=substeps,
        body_names=("water",),
        **parameters,
    )


def _make_block(at: tuple[float, ...]) -> Collider:
    """Return a free cube, in 2-D a square one metre deep."""
    d = len(at)
    mass = DENSITY[d] * (2 * BLOCK) ** d
    inertia = (mass * (2 * BLOCK) ** 2 / 6,) * (1 if d == 2 else 3)
    return Collider(sdf.Box((BLOCK,) * d), at, mass=mass, inertia=inertia)


def _rise_and_turn_actions(frames: int) -> np.ndarray:
    """Return actions [T, 3] that rise to the block's height and turn halfway towards it."""
    early = np.arange(frames) < 20
    return np.stack([0 * early, 0.5 * early, -0.4 * early], 1).astype(np.float32)


def _quarter_turn(d: int) -> tuple[float, ...]:
    """Return a quarter turn, from along x to along y."""
    return (np.pi / 2,) if d == 2 else (0.5**0.5, 0.0, 0.0, 0.5**0.5)
