"""Differentiable matter: liquids, solids and grains on one grid, in SI units.

scene = Scene((Body(x, Liquid(), volume),), Grid(dx, cells), gravity=(0.0, -9.81))
end = simulate(scene, t).state          # checks the scene and chooses dt
end = step(prepare(scene), state)       # one step: jit, grad, jvp, vmap
end, seen = rollout(scene, state, controls, drive, substeps=10)  # gradients in bounded memory
"""

from jaxgpu.geometry import fill_box, sdf

from .engine import step
from .grid.grid import Grid
from .health import Health, examine
from .materials.elastic import Corotated, NeoHookean, lame
from .materials.liquid import HerschelBulkley, Liquid
from .materials.plastic import DruckerPrager, Snow, VonMises
from .prepare import prepare
from .rollout import lost, rollout, simulate
from .scene import Body, Material, Particles, Scene, State, init, positions, velocities
from .tools.collide import Collider, Tool
from .tools.soft import Soft
from .tools.sources import Collector, Injector

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
    "fill_box",
    "lost",
    "positions",
    "prepare",
    "rollout",
    "sdf",
    "simulate",
    "step",
    "velocities",
]
