"""Articulated rigid bodies: trees of joints, their dynamics, and compliant contact.

Read `links` and `tree` first (what a mechanism is), then `kinematics` and `dynamics` (where it is
and what moves it, in the terms of Featherstone's book), `simulate` (steps in time), and `contact`
with `contact_limits` and `mobility`. `mjcf*` read MuJoCo's files, `solids` gives inertias.
"""

from .contact import Contact, Spheres
from .dynamics import forward_dynamics, inverse_dynamics, mass_matrix
from .kinematics import Frames, forward_kinematics
from .links import Link
from .mjcf import from_mjcf
from .simulate import Drive, Simulation, State, passive
from .solids import Solid, solid, weld
from .tree import Tree, assemble

__all__ = [
    "Contact",
    "Drive",
    "Frames",
    "Link",
    "Simulation",
    "Solid",
    "Spheres",
    "State",
    "Tree",
    "assemble",
    "forward_dynamics",
    "forward_kinematics",
    "from_mjcf",
    "inverse_dynamics",
    "mass_matrix",
    "passive",
    "solid",
    "weld",
]
