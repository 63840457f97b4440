"""The mobile manipulator Fetch, moved kinematically or driven by servos with dynamics.

Read `fetch` first (joints, frames, and the capsules around the links), then `contact` (how deep
these penetrate boxes) and `movement`, which drives the base, moves the arm and carries objects.
`grasps` tests whether the hand reaches a position. `mechanism` is the robot with masses, among its
`surroundings`; `servos` drives it.
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
