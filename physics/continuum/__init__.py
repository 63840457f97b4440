"""Differentiable material point method (MPM): liquids, solids and grains, in SI units.

scene = Scene((Body(x, Liquid(), volume),), Grid(dx, cells), gravity=(0.0, -9.81))
end = simulate(scene, t).state          # checks the scene and chooses dt
scene = scene.prepare(); state = scene.step(scene.init())  # one step: jit, grad, jvp, vmap
end, seen = rollout(scene, state, controls, drive, substeps=10)  # gradients in bounded memory

To read: `scene` with its `scene_fields` (input), `particles` (state) and `engine` (one time step),
then the subpackages that these use: `grid` (P2G and G2P transfers), `materials` (stress) and
`tools` (contact, sources). The remaining modules are `checks` and `stability` (before a run),
`trajectory` (pure, differentiable), `simulation` (on the host), `health` (of gradients), `devices`
(with `partition` and `migration`) and `files`.
"""

from jaxgpu.geometry import fill_box, sdf

from . import materials
from .grid import Grid
from .health import GradientHealth, examine
from .materials import *
from .particles import Body, Material, Particles, State
from .scene import Scene
from .simulation import count_lost, simulate
from .tools import Collector, Collider, Injector, SoftContact, Tool
from .trajectory import rollout

__all__ = [
    "Body",
    "Collector",
    "Collider",
    "Grid",
    "GradientHealth",
    "Injector",
    "Material",
    "Particles",
    "Scene",
    "SoftContact",
    "State",
    "Tool",
    "count_lost",
    "examine",
    "fill_box",
    "rollout",
    "sdf",
    "simulate",
]
__all__ += materials.__all__
