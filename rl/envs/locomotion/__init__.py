"""Locomotion and reaching: Gymnasium's tasks on MuJoCo's robots, step for step.

Read `robot` first, the base class, then `runner` and `hopper`. Each other file is one task, and
`drawing` has their rendering. By name they are `rl.make("hopper")`, `"half-cheetah"`,
`"walker2d"`, `"swimmer"`, `"ant"`, `"humanoid"`, `"humanoid-standup"`, `"reacher"`, `"pusher"` and
`"inverted-double-pendulum"`. The simulation is `jaxgpu.physics.rigid`.
"""

from .ant import Ant
from .double_pendulum import InvertedDoublePendulum
from .half_cheetah import HalfCheetah
from .hopper import Hopper
from .humanoid import Humanoid, HumanoidStandup
from .pusher import Pusher
from .reacher import Reacher
from .robot import Robot
from .swimmer import Swimmer
from .walker2d import Walker2d

__all__ = [
    "Ant",
    "HalfCheetah",
    "Hopper",
    "Humanoid",
    "HumanoidStandup",
    "InvertedDoublePendulum",
    "Pusher",
    "Reacher",
    "Robot",
    "Swimmer",
    "Walker2d",
]
