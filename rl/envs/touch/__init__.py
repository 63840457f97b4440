"""Tactile manipulation tasks: a gripper with soft pads brings a part to its goal.

Read `task` first (actions, rewards, random resets), then `observations`. `script` is a scripted
teacher, and `drawing` has the rendering. Each task is a file: `insertion` (a peg into its hole),
`placement` (a peg onto a pad) and `screwing` (a nut onto a bolt). By name they are
`rl.make("touch/...")`.
"""

from .insertion import PegInsertion
from .placement import PegPlacement
from .screwing import NutOnBolt
from .task import TouchTask

__all__ = ["NutOnBolt", "PegInsertion", "PegPlacement", "TouchTask"]
