"""Nozzle under a tank of oil, in two dimensions: its geometry, simulation and objectives.

The walls are sheets along a polyline of joints, whose half widths are the design. A population is
evaluated by `vmap` in one program, and derivatives propagate through every step of the flow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution import Box, Problem
from jaxgpu.geometry.vectors import Vec, length
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.continuum import (
    Body,
    Collector,
    Collider,
    Grid,
    Liquid,
    Scene,
    SoftContact,
    State,
    fill_box,
    rollout,
    sdf,
)

JOINTS = (0.27, 0.24, 0.21, 0.18)  # heights of the joints with free half widths, m
NARROWEST, WIDEST = 0.02, 0.08  # bounds of the half widths, m
WALL = 0.008  # half the wall thickness, m
TANK = (0.09, 0.30)  # upper end of the walls, on the faces of the box, m
PLANE, BAND, EDGE = 0.10, 0.015, 0.01  # height at which the jet is measured, and its blurs, m
DRAIN = 0.05  # height below which oil is removed, m
DX, DT, SUBSTEPS = 0.01, 8e-4, 10
REFERENCE = (1.0, 20.0)  # worst objectives: fraction held back, width in mm
IDEAL = (0.0, 4.0)


@pytree
class Walls:
    """Two sheets along a polyline of joints and its mirror image about x = 0, in the plane.

    >>> float(Walls((0.1, 0.1), (0.0, 1.0), 0.02).distance((jnp.array(-0.2), jnp.array(0.5))))
    0.07999999821186066
    """

    x: Any = number(unit="m")  # [K] distances of the joints from the axis
    y: Any = number(unit="m")  # [K] heights of the joints
    radius: Array | float = number(above=0, unit="m", one=True)  # [] half the thickness

    def distance(self, x: Vec) -> Array:
        """Return the signed distance from the surface, m; exact outside."""
        across, up = jnp.abs(x[0]), x[1]
        nearest: Any = jnp.inf
        for i in range(len(self.y) - 1):
            along = self.x[i + 1] - self.x[i], self.y[i + 1] - self.y[i]
            arm = across - self.x[i], up - self.y[i]
            share = (arm[0] * along[0] + arm[1] * along[1]) / (along[0] ** 2 + along[1] ** 2)
            share = jnp.clip(share, 0, 1)
            away = length((arm[0] - share * along[0], arm[1] - share * along[1]))
            nearest = jnp.minimum(nearest, away)
        return nearest - self.radius


@dataclass(frozen=True)
class Pour:
    """Resolution and duration of a draining tank; hashable, as an objective must be."""

    spacing: float = 0.005  # of particles, m
    frames: int = 40  # of ten steps each

    @property
    def seconds(self) -> float:
        """Simulated time, s."""
        return self.frames * SUBSTEPS * DT

    def problem(self) -> Problem:
        """Return the problem: half widths [4] in m to fraction held back and width of the jet."""
        ends = (jnp.full(len(JOINTS), end) for end in (NARROWEST, WIDEST))
        return Problem(Box(*ends), self.objectives, objectives=2)

    def scene(self, widths: Array) -> Scene:
        """Return the scene: the tank, its nozzle of half widths [4] in m, and the drain below."""
        dtype = widths.dtype
        joints = jnp.concatenate([jnp.asarray(TANK[:1], dtype), widths])
        walls = Walls(joints, (TANK[1], *JOINTS), WALL)
        oil = Body(
            fill_box((-0.08, 0.31), (0.08, 0.41), self.spacing).astype(dtype),
            Liquid(bulk_modulus=3.6e4, viscosity=1.0),
            volume=jnp.asarray(self.spacing**2, dtype),
        )
        return Scene(
            (oil,),
            Grid(DX, (18, 42), lower=(-0.09, 0.0)),
            gravity=(0.0, -9.81),
            # A smooth, wide contact gives walls a gradient wherever oil is near.
            colliders=(Collider(walls, (0.0, 0.0), soft=SoftContact(0.005, rate=200.0)),),
            sources=(Collector(sdf.HalfSpace((0.0, 1.0), DRAIN)),),
            dt=jnp.asarray(DT, dtype),
            sharp=False,
        )

    def objectives(self, widths: Array) -> Array:
        """Return [2]: final fraction of oil above the plane, and rms width of the jet there, mm.

        The width is over all frames, with particles weighted by their distance to the plane. A
        thousandth of the oil is counted at 50 mm, so that a closed nozzle has a width, too. The
        objectives are smooth in the half widths [4] except for kinks of the walls' distance.
        """
        scene = self.scene(widths)
        oil = scene.bodies[0]
        mass = oil.x.shape[0] * oil.volume * oil.density
        _, seen = rollout(scene, scene.init(), self.frames, substeps=SUBSTEPS, measure=jet)
        weight, moment = jnp.sum(seen[:, 0]), jnp.sum(seen[:, 1])
        extra = 1e-3 * mass
        width = jnp.sqrt((moment + extra * 0.05**2) / (weight + extra))
        return jnp.stack([seen[-1, 2] / mass, 1e3 * width])

    def trajectory(self, widths: Array) -> Array:
        """Return particle positions at each frame, [1 + frames, N, 2] m; NaN after removal."""
        scene = self.scene(widths)
        return rollout(scene, scene.init(), self.frames, substeps=SUBSTEPS, measure=positions)[1]


def jet(state: State) -> Array:
    """Return [3]: mass near the plane, its second moment about the axis, mass above the plane."""
    oil = state.bodies[0]
    up = oil.x[:, 1] - PLANE
    near = oil.m * jnp.exp(-0.5 * (up / BAND) ** 2)
    above = oil.m * jax.nn.sigmoid(up / EDGE)
    return jnp.stack([jnp.sum(near), jnp.sum(near * oil.x[:, 0] ** 2), jnp.sum(above)])


def positions(state: State) -> Array:
    """Return the positions of active particles, [N, 2] m, NaN for others."""
    oil = state.bodies[0]
    return jnp.where(oil.active[:, None], oil.x, jnp.nan)


def with_slopes(objectives: Callable[[Array], Array], designs: Array) -> tuple[Array, Array]:
    """Return objectives [N, 2] of designs [N, D] and derivatives [N, 2, D], by forward mode.

    A design has few variables, so one forward pass propagates them all and stores no states.
    """

    def objectives_twice(x: Array) -> tuple[Array, Array]:
        f = objectives(x)
        return f, f

    slopes, values = jax.vmap(jax.jacfwd(objectives_twice, has_aux=True))(designs)
    return values, slopes
