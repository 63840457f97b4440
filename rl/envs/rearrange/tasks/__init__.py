"""Tasks of Fetch in houses, by name `rl.make("rearrange/<task>")`.

Read `episodes` first (what is to be fetched, and from where; made on the host), then `task` (state,
observations, rewards), `navigate`, and `carry` with its tasks in `rearranging`, of which `script`
does the first; `driven` has these by contact. `standard` has the houses for whoever gives none,
`scene` what a picture shows.
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
