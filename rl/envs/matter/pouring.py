"""Pouring: tilt a glass so that the water on top runs out and the milk below stays.

After FluidLab's task of that name (Xian et al. 2023, arXiv:2303.02346): l = mean of (y - h) of the
water + mean 1-norm of (x - x_0) of the milk, in metres. Liquid below h is removed, x_0 is the
initial position."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations as pose
from jaxgpu.geometry import sdf
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.continuum import (
    Body,
    Collector,
    Collider,
    Grid,
    Liquid,
    Particles,
    Scene,
    State,
    fill_box,
)

from ...environment import register
from .shapes import glass
from .task import MatterTask, Play, masked_mean

WATER, MILK = 1000.0, 1290.0  # kg/m^3
THICK = 20.0  # Pa s, of milk boiled down to caramel
DEPTHS = 0.021, 0.03  # m, of milk and water
HEIGHT = 0.04  # m
# Dimensions, cells, sound in m/s, substeps; the liquids reach 1.5 m/s.
SIZES = {"coarse": (2, 26, 6.0, 28), "small": (2, 48, 8.0, 80), "full": (3, 96, 8.0, 300)}
FRAMES = 75


@pytree
class PourGoal:
    """Goal of water on the floor, with the milk in place.

    >>> PourGoal(height=0.1, half=(0.03, 0.04)).milk  # the share of the milk in the loss
    1.0
    """

    height: Array | float = number(unit="m")  # [] below which liquid is removed, m
    half: Any = number(above=0, unit="m")  # [D] half sizes of the inside of the glass, m
    milk: Array | float = number(default=1.0, least=0)  # [] weight of the milk

    def reference(self, state: State, play: Play) -> Any:
        """Return the initial positions of the milk, and the filled slots of milk and water."""
        milk, water = state.bodies
        return milk.x, milk.m > 0, water.m > 0

    def loss(self, state: State, reference: Any) -> Array:
        """Return the mean of abs(y - h) of the water + mean 1-norm of x - x_0 of the milk, m."""
        (milk, water), (x, of_milk, of_water) = state.bodies, reference
        zero = jnp.zeros_like(milk.m)
        away = sum(jnp.abs(milk.x - x).T, zero)
        away = jnp.where(milk.m > 0, away, x[:, 1] - self.height)
        left = jnp.where(water.m > 0, jnp.abs(water.x[:, 1] - self.height), 0)
        return masked_mean(left, of_water) + self.milk * masked_mean(away, of_milk)

    def baseline(self, state: State, reference: Any) -> Array:
        """Return the loss at the start."""
        return self.loss(state, reference)

    def success(self, state: State, reference: Any) -> Array:
        """Return whether 90 % of the water are out of the glass and 90 % of the milk in it."""
        (milk, water), (_, of_milk, of_water) = state.bodies, reference
        inside_mask = lambda p: self._is_inside_glass(p, state.tools[0]).astype(p.m.dtype)
        inside_fraction = lambda p, filled: masked_mean(inside_mask(p), filled)
        return (inside_fraction(milk, of_milk) > 0.9) & (inside_fraction(water, of_water) < 0.1)

    def _is_inside_glass(self, p: Particles, tool: Any) -> Array:
        local = pose.rotate_inverse(tool.turn, tuple(a - tool.x[i] for i, a in enumerate(p.x.T)))
        within = p.m > 0
        for i, a in enumerate(local):
            within = within & (jnp.abs(a) < self.half[i])
        return within


@register("matter/pouring")
def make_pouring(size: str = "small", **parameters: Any) -> MatterTask:
    """Make the task of pouring the water off the milk in 1.5 s.

    `size` is "small" (2-D), "full" (3-D), or "coarse": 2-D with cells of 11 mm, an episode of which
    costs a seventh of a small one. The box is 288 mm long, 252 mm high and, in 3-D, 144 mm deep, up
    to a cell.
    """
    d, cells, sound, substeps = SIZES[size]
    dx = 0.288 / cells
    radius, half = 0.039, 0.042
    middle = (0.105, 0.135, 0.072)[:d]
    shape = glass(d, half, radius, 0.018)
    box = (cells, cells * 7 // 8, cells // 2)[:d]
    grid = Grid(dx, box)
    bottom = middle[1] - half
    fill_layer = lambda low, deep: _layer_points(d, middle, radius, low, low + deep, dx / 2)
    # Linear pressure keeps the stiffness constant.
    make_liquid = lambda density, viscosity: Liquid(density * sound**2, viscosity, exponent=1.0)
    volume = (dx / 2) ** d
    deep = [round(depth / (dx / 2)) * (dx / 2) for depth in DEPTHS]  # whole layers of particles
    bodies = (
        Body(fill_layer(bottom, deep[0]), make_liquid(MILK, THICK), volume, MILK),
        Body(fill_layer(bottom + deep[0], deep[1]), make_liquid(WATER, 0.0), volume, WATER),
    )
    tool = Collider(shape, middle)
    dt = 0.02 / substeps
    gravity = (0.0, -9.81, 0.0)[:d]
    below = sdf.Moved(sdf.HalfSpace((0.0, 1.0, 0.0)[:d]), (0.0, HEIGHT, 0.0)[:d])
    sinks = (Collector(below, body=0), Collector(below, body=1))
    scene = Scene(
        bodies, grid, gravity=gravity, colliders=(tool,), dt=jnp.float32(dt), sources=sinks
    ).prepare()
    goal = PourGoal(height=HEIGHT, half=(radius, half, radius)[:d])
    return MatterTask(
        scene,
        goal,
        speed=(0.1, 0.1, 4.0),
        initial_plan=_tilt_actions(FRAMES),
        max_steps=FRAMES,
        substeps=substeps,
        **parameters,
    )


def _tilt_actions(frames: int) -> np.ndarray:
    """Return actions [T, 3] that tilt by 71 degrees and back, which pours part of the water."""
    turn = -0.65 * np.sin(2 * np.pi * (np.arange(frames) + 0.5) / frames)
    return np.stack([0 * turn, 0 * turn, turn], 1).astype(np.float32)


def _layer_points(
    d: int, middle: Any, radius: float, low: float, high: float, spacing: float
) -> Array:
    """Return points of a layer inside the glass."""
    lower = tuple(low if i == 1 else m - radius for i, m in enumerate(middle))
    upper = tuple(high if i == 1 else m + radius for i, m in enumerate(middle))
    inside = None
    if d == 3:
        inside = sdf.Moved(sdf.Cylinder(1.0, radius, axis=1), (middle[0], 0.0, middle[2]))
    return fill_box(lower, upper, spacing, inside)
