"""Tactile sensors: the field of forces on a soft pad, and a gripper that feels what it holds.

Read `pad` first (where taxels are, and what they see of an object), then `force_field` (the forces
on them). `parts` are pegs, nuts and what they go into, `grasp` is a gripper with two pads that
moves a part by that field, `implicit` its steps, and `bonds` the contact of points in them.
"""

from .force_field import ForceField, ViscousField
from .grasp import Grasp
from .implicit import GraspState
from .pad import probe, taxels, wrench
from .parts import PEGS, THREADS, Fixture, Part, nut_and_bolt, peg, peg_and_pad, peg_and_socket

__all__ = [
    "PEGS",
    "THREADS",
    "Fixture",
    "ForceField",
    "Grasp",
    "GraspState",
    "Part",
    "ViscousField",
    "nut_and_bolt",
    "peg",
    "peg_and_pad",
    "peg_and_socket",
    "probe",
    "taxels",
    "wrench",
]
