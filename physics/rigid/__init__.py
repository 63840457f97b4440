"""Articulated rigid bodies in contact: MuJoCo's model and soft constraints, exact gradients.

`load` reads a robot's file into a `Model`. `Model.init`, `.step` and `.forward` simulate one state,
and `jax.vmap` simulates a batch. Read `models` first (the data of a mechanism), then `motion`
(poses, inertia and forces without contact), `collision` (contacts between geoms), `constraints`
(accelerations under contacts, limits and equalities), `forward` and `integrators` (a time step),
and `diagnostics`.
"""

from .constraints.contacts import Contacts
from .diagnostics import energy, inverse_dynamics, jacobian, mass_matrix, update_invweight
from .forward import Dynamics, State
from .model import Model, load
from .models.mechanism import (
    Actuators,
    Bodies,
    Dofs,
    Equalities,
    Geoms,
    Joints,
    Option,
    Pairs,
    Sites,
    Tendons,
)
from .motion.poses import Poses

__all__ = [
    "Actuators",
    "Bodies",
    "Contacts",
    "Dynamics",
    "Equalities",
    "Dofs",
    "Geoms",
    "Joints",
    "Model",
    "Option",
    "Pairs",
    "Poses",
    "Sites",
    "State",
    "Tendons",
    "energy",
    "inverse_dynamics",
    "jacobian",
    "load",
    "mass_matrix",
    "update_invweight",
]
