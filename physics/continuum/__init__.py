"""Differentiable matter: liquids, solids and grains on one grid, in SI units.

scene = Scene((Body(x, Liquid(), volume),), Grid(dx, cells), gravity=(0.0, -9.81))
end = simulate(scene, t).state          # checks the scene and chooses dt
end = step(prepare(scene), state)       # one step: jit, grad, jvp, vmap
end, seen = rollout(scene, state, controls, drive, substeps=10)  # gradients in bounded memory
"""

from jaxgpu.physics.continuum import sdf
from jaxgpu.physics.continuum.collide import Collider, Tool
from jaxgpu.physics.continuum.elastic import Corotated, NeoHookean, lame
from jaxgpu.physics.continuum.engine import step
from jaxgpu.physics.continuum.fill import lattice
from jaxgpu.physics.continuum.grid import Grid
from jaxgpu.physics.continuum.health import Health, examine
from jaxgpu.physics.continuum.liquid import HerschelBulkley, Liquid
from jaxgpu.physics.continuum.plastic import DruckerPrager, Snow, VonMises
from jaxgpu.physics.continuum.prepare import prepare
from jaxgpu.physics.continuum.rollout import lost, rollout, simulate
from jaxgpu.physics.continuum.scene import (
    Body,
    Material,
    Particles,
    Scene,
    State,
    init,
    positions,
    velocities,
)
from jaxgpu.physics.continuum.soft import Soft
from jaxgpu.physics.continuum.sources import Collector, Injector

__all__ = [
    "Body",
    "Collector",
    "Collider",
    "Corotated",
    "DruckerPrager",
    "Grid",
    "Health",
    "HerschelBulkley",
    "Injector",
    "Liquid",
    "Material",
    "NeoHookean",
    "Particles",
    "Scene",
    "Snow",
    "Soft",
    "State",
    "Tool",
    "VonMises",
    "examine",
    "init",
    "lame",
    "lattice",
    "lost",
    "positions",
    "prepare",
    "rollout",
    "sdf",
    "simulate",
    "step",
    "velocities",
]
