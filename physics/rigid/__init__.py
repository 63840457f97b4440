"""Articulated rigid bodies: trees of joints, their dynamics, and compliant contact."""

from .dynamics import forward, inverse, mass_matrix
from .kinematics import kinematics
from .links import Link
from .mjcf import from_mjcf
from .simulate import Drive, Simulation, State, init, passive, step
from .tree import Tree, assemble

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
