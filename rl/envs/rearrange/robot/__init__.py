"""The mobile manipulator Fetch, moved kinematically or driven by servos with dynamics.

Read `fetch` first (joints, frames, and the capsules around the links), then `contact` (how deep
these penetrate boxes) and `movement`, which drives the base, moves the arm and carries objects.
`reachability` tests whether the hand reaches a position. `mechanism` is the robot with masses,
among its `surroundings`; `servos` drives it.
"""

from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics
from .movement import Load, Movement, MoveResult
from .servos import Servos, ServoState

__all__ = [
    "Boxes",
    "ServoState",
    "Frames",
    "Joints",
    "Load",
    "MoveResult",
    "Movement",
    "Servos",
    "forward_kinematics",
]
