"""Tactile sensors: forces on soft pads, pictures of gels, and a gripper that feels what it holds.

Read `pad` first (where taxels are, what they see of an object, and how high it lies over them),
then `force_field` (the forces on them); apart from these `optical` (pictures of a gel that is
pressed) and `calibration` (the tables they are made of). `parts` are pegs, nuts and what they go
into, `gripper` has the fields of a gripper with two pads and its state, `grasp` moves a part by
that field, `implicit` has its steps, and `bonds` the contact of points in them.
"""

from .calibration import gelsight
from .force_field import ForceField, ViscousField
from .grasp import Grasp
from .gripper import GraspState
from .optical import GelSight
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
