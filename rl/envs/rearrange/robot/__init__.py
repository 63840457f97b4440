"""Fetch: without forces, where it goes where it is sent unless something is in the way, or driven.

Read `fetch` first (joints, frames, and the capsules around the links), then `contact` (how deep
these lie in boxes) and `movement`, which drives the base, moves the arm and carries things;
`grasps`, which says whether the hand gets to a place; and `mechanism`, the robot with masses, among
its `surroundings`, which `servos` drives.
"""

from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics
from .movement import Load, Moved, Movement
from .servos import Driven, Servos

__all__ = [
    "Boxes",
    "Driven",
    "Frames",
    "Joints",
    "Load",
    "Moved",
    "Movement",
    "Servos",
    "forward_kinematics",
]
