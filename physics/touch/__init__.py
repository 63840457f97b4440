"""Tactile sensors: forces on soft pads, images of gels, and a gripper with tactile pads.

Read `pad` first (positions of taxels, and an object's distance, velocity and height at them), then
`force_field` (the forces on them). `optics` (images of a pressed gel) and `calibration` (its
tables) are independent of these. `parts` has pegs, nuts and their fixtures, `gripper` the fields
and the state of a gripper with two pads; `grasp` moves a part by the forces on the pads,
`implicit_step` has its time steps, and `contact_points` the contact of points in them.
"""

from .calibration import gelsight
from .force_field import ForceField, ViscousField
from .grasp import Grasp
from .gripper import GraspState
from .optics import GelSight
from .pad import heights, probe, taxels, wrench
from .parts import PEGS, THREADS, Fixture, Part, nut_and_bolt, peg, peg_and_pad, peg_and_socket

__all__ = [
    "PEGS",
    "THREADS",
    "Fixture",
    "ForceField",
    "GelSight",
    "Grasp",
    "GraspState",
    "Part",
    "ViscousField",
    "gelsight",
    "heights",
    "nut_and_bolt",
    "peg",
    "peg_and_pad",
    "peg_and_socket",
    "probe",
    "taxels",
    "wrench",
]
