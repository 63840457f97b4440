"""Fetch, moved without forces: it goes where it is sent unless something is in the way.

Read `fetch` first (joints, frames, and the capsules around the links), then `contact` (how deep
these lie in boxes) and `movement`, which drives the base, moves the arm and carries things.
"""

from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics
from .movement import Load, Moved, Movement

__all__ = ["Boxes", "Frames", "Joints", "Load", "Moved", "Movement", "forward_kinematics"]
