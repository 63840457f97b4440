"""Articulated rigid bodies in contact: MuJoCo's model, its soft constraints, exact gradients.

`load` reads a robot's file into a `Model`; `Model.init`, `.step` and `.forward` simulate one state,
`jax.vmap` many. Read `models` first (what a mechanism is), then `motion` (where it is, its inertia
and the forces without contact), `collision` (where shapes touch), `constraints` (what contacts,
limits and equalities do to the accelerations), `forward` and `integrators` (a step of time), and
`diagnostics`.
"""

from .constraints.contacts import Contacts
from .diagnostics import energy, inverse_dynamics, jacobian, mass_matrix, reweighed
from .forward import Dynamics, State
from .model import Model, load
from .models.model import (
    Actuators,
    Bodies,
    Equalities,
    Freedoms,
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
    "Freedoms",
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
    "reweighed",
]
