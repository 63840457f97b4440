"""Articulated rigid bodies: trees of joints, their dynamics, and compliant contact."""

from jaxgpu.physics.rigid.dynamics import forward, inverse, mass_matrix
from jaxgpu.physics.rigid.kinematics import kinematics
from jaxgpu.physics.rigid.links import Link
from jaxgpu.physics.rigid.mjcf import from_mjcf
from jaxgpu.physics.rigid.simulate import Drive, Simulation, State, init, passive, step
from jaxgpu.physics.rigid.tree import Tree, assemble

__all__ = [
    "Drive",
    "Link",
    "Simulation",
    "State",
    "Tree",
    "assemble",
    "forward",
    "from_mjcf",
    "init",
    "inverse",
    "kinematics",
    "mass_matrix",
    "passive",
    "step",
]
