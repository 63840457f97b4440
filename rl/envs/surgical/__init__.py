"""Surgical arms: reaching, tracking, picking and placing with the da Vinci arms and STAR.

Read `arms` (the chains and their joint limits) and `kinematics` first, then `arm_task`, the base of
the joint-space tasks `reach`, `track`, `center`, and `dynamic_reach`, whose arms have the masses
and servos of `dynamics`. `pick_place` is the base of `needle_pick` and `peg_transfer`, where a rule
decides about grasps; in the tasks of `contact` friction does. `surgical_gym` has the published
tasks of Surgical Gym, on the arms of `surgical_gym_arms`. `drawing` renders all of them. By name
they are `rl.make("surgical/<arm or object>-<task>")`.
"""

from .arms import ECM, PSM, STAR, Arm
from .center import Center
from .contact import ContactTask, NeedlePickContact, PegTransferContact
from .dynamic_reach import DynamicReach
from .dynamics import ArmDynamics
from .kinematics import forward_kinematics, frame_origins, inverse_kinematics
from .needle_pick import NeedlePick
from .peg_transfer import PegTransfer
from .pick_place import PickPlace
from .reach import Reach
from .surgical_gym import SurgicalGymReach
from .surgical_gym_arms import GymArm
from .track import Track

__all__ = [
    "ECM",
    "PSM",
    "STAR",
    "Arm",
    "ArmDynamics",
    "Center",
    "ContactTask",
    "DynamicReach",
    "GymArm",
    "NeedlePick",
    "NeedlePickContact",
    "PegTransfer",
    "PegTransferContact",
    "PickPlace",
    "Reach",
    "SurgicalGymReach",
    "Track",
    "forward_kinematics",
    "frame_origins",
    "inverse_kinematics",
]
