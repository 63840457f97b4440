"""A nozzle under a tank of oil, in a plane: its shape, what is simulated, and what is minimised.

Walls are sheets along a line of joints, whose half widths are the design. All of a population is
mapped over in one program, and the derivatives run through every step of the flow.
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
    Soft,
    State,
    fill_box,
    rollout,
    sdf,
)

JOINTS = (0.27, 0.24, 0.21, 0.18)  # heights of the joints whose half widths are free, m
NARROWEST, WIDEST = 0.02, 0.08  # half widths, m
WALL = 0.008  # half the thickness of the walls, m
TANK = (0.09, 0.30)  # where the walls begin, on the faces of the box, m
PLANE, BAND, EDGE = 0.10, 0.015, 0.01  # height at which the jet is seen, and how sharply, m
DRAIN = 0.05  # height below which oil is taken away, m
DX, DT, SUBSTEPS = 0.01, 8e-4, 10
REFERENCE = (1.0, 20.0)  # objectives that count for nothing: share held back, width in mm
IDEAL = (0.0, 4.0)


@pytree
class Walls:
    """Two sheets along a line of joints and its mirror image about x = 0, in the plane.

    >>> float(Walls((0.1, 0.1), (0.0, 1.0), 0.02).distance((jnp.array(-0.2), jnp.array(0.5))))
    0.07999999821186066
    """

    x: Any = number(unit="m")  # [K] distance of the joints from the axis
    y: Any = number(unit="m")  # [K] their heights
    radius: Array | float = number(above=0, unit="m", one=True)  # [] half the thickness

    def distance(self, x: Vec) -> Array:
        """Distance from the surface, m; exact outside."""
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
    """How finely and for how long a tank runs out; hashable, as an objective must be."""

    spacing: float = 0.005  # of particles, m
    frames: int = 40  # of ten steps

    @property
    def seconds(self) -> float:
        """Simulated time, s."""
        return self.frames * SUBSTEPS * DT

    def problem(self) -> Problem:
        """Half widths [4] in m, to what is held back and the width of the jet."""
        ends = (jnp.full(len(JOINTS), end) for end in (NARROWEST, WIDEST))
        return Problem(Box(*ends), self.objectives, objectives=2)

    def scene(self, widths: Array) -> Scene:
        """The tank, its nozzle of these half widths [4], m, and the drain under it."""
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
            # felt ahead and smoothly, so that a wall has a gradient wherever oil is near it
            colliders=(Collider(walls, (0.0, 0.0), soft=Soft(0.005, rate=200.0)),),
            sources=(Collector(sdf.HalfSpace((0.0, 1.0), DRAIN)),),
            dt=jnp.asarray(DT, dtype),
            sharp=False,
        )

    def objectives(self, widths: Array) -> Array:
        """Share of the oil still above the plane at the end; rms width of the jet there, mm.

        The width is that of all frames, each particle weighted by how near it is to the plane; a
        thousandth of the oil is counted at 50 mm, so that a nozzle that is shut has a width, too.
        Smooth in the half widths [4] but for kinks of the walls' distance. Returns [2].
        """
        scene = self.scene(widths)
        oil = scene.bodies[0]
        mass = oil.x.shape[0] * oil.volume * oil.density
        _, seen = rollout(scene, scene.init(), self.frames, substeps=SUBSTEPS, measure=jet)
        weight, moment = jnp.sum(seen[:, 0]), jnp.sum(seen[:, 1])
        extra = 1e-3 * mass
        width = jnp.sqrt((moment + extra * 0.05**2) / (weight + extra))
        return jnp.stack([seen[-1, 2] / mass, 1e3 * width])

    def film(self, widths: Array) -> Array:
        """Where the particles are at each frame, [1 + frames, N, 2] m; nan once they are gone."""
        scene = self.scene(widths)
        return rollout(scene, scene.init(), self.frames, substeps=SUBSTEPS, measure=places)[1]


def jet(state: State) -> Array:
    """Mass near the plane, its second moment about the axis, and mass above the plane, [3]."""
    oil = state.bodies[0]
    up = oil.x[:, 1] - PLANE
    near = oil.m * jnp.exp(-0.5 * (up / BAND) ** 2)
    above = oil.m * jax.nn.sigmoid(up / EDGE)
    return jnp.stack([jnp.sum(near), jnp.sum(near * oil.x[:, 0] ** 2), jnp.sum(above)])


def places(state: State) -> Array:
    """Positions of the particles that are there, [N, 2] m, nan for others."""
    oil = state.bodies[0]
    return jnp.where(oil.active[:, None], oil.x, jnp.nan)


def with_slopes(objectives: Callable[[Array], Array], designs: Array) -> tuple[Array, Array]:
    """Objectives [N, 2] of designs [N, D], and their derivatives [N, 2, D], forward.

    Forward, since a design has few numbers: one pass carries them all and keeps no state.
    """

    def twice(x: Array) -> tuple[Array, Array]:
        f = objectives(x)
        return f, f

    slopes, values = jax.vmap(jax.jacfwd(twice, has_aux=True))(designs)
    return values, slopes
