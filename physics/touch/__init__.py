"""Tactile sensors: the field of forces on a soft pad.

Read `pad` first (where taxels are, and what they see of an object), then `force_field` (the forces
on them).
"""

from .force_field import ForceField, ViscousField
from .pad import probe, taxels, wrench

__all__ = ["ForceField", "ViscousField", "probe", "taxels", "wrench"]
