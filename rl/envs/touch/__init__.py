"""Tasks of touch: a part in a gripper with soft pads is brought to its place.

Read `task` first (actions, rewards, what is drawn for an episode), then `observations`; `script` is
a teacher, and `drawing` has the pictures. A task is a file: `insertion` (a peg into its hole),
`placement` (a peg on to a pad) and `screwing` (a nut on to a bolt). By name they are
`rl.make("touch/...")`.
"""

from .insertion import PegInsertion
from .placement import PegPlacement
from .screwing import NutOnBolt
from .task import TouchTask

__all__ = ["NutOnBolt", "PegInsertion", "PegPlacement", "TouchTask"]
