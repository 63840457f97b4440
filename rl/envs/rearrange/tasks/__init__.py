"""Tasks of Fetch in houses, by name `rl.make("rearrange/<task>")`.

Read `episodes` first (object, goal and starting poses; made on the host), then `task` (state,
observations, rewards), `navigate`, and `carry` with its tasks in `rearranging`. `script` solves
mobile pick, and `driven` has the carrying tasks with dynamics. `standard` has the default houses,
`scene` the rendering.
"""

from .carry import Carry
from .driven import DrivenCarry, DrivenPick, DrivenPlace, DrivenRearrange
from .episodes import Episodes, fetching, grasping, visiting
from .navigate import Navigate
from .rearranging import MobilePick, Place, Rearrange
from .task import HouseTask

__all__ = [
    "Carry",
    "DrivenCarry",
    "DrivenPick",
    "DrivenPlace",
    "DrivenRearrange",
    "Episodes",
    "HouseTask",
    "MobilePick",
    "Navigate",
    "Place",
    "Rearrange",
    "fetching",
    "grasping",
    "visiting",
]
