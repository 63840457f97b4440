"""Tactile sensors: forces on the taxels of a soft pad, and pictures of a gel that is pressed.

Read `pad` first (where taxels are, and what they see of an object), then `force_field` (the forces
on them); apart from these `optical` (pictures) and `calibration` (the tables they are made of).
"""

from .calibration import gelsight
from .force_field import ForceField, ViscousField
from .optical import GelSight
from .pad import probe, taxels, wrench

__all__ = ["ForceField", "GelSight", "ViscousField", "gelsight", "probe", "taxels", "wrench"]
