"""Tasks of Fetch in houses, by name `rl.make("rearrange/<task>")`.

Read `episodes` first (object, goal and starting poses; made on the host), then `task` (state,
observations, rewards), `navigate`, and `carry` with its tasks in `carry_tasks`. `script` solves
mobile pick, and `dynamic_tasks` has the carrying tasks with dynamics. `defaults` has the default
houses, `scene` the rendering.
"""

from .carry import CarryTask
from .carry_tasks import MobilePick, Place, Rearrange
from .dynamic_tasks import DynamicCarry, DynamicPick, DynamicPlace, DynamicRearrange
from .episodes import Episodes, fetch_episodes, grasp_episodes, visit_episodes
from .navigate import Navigate
from .task import HouseTask

__all__ = [
    "CarryTask",
    "DynamicCarry",
    "DynamicPick",
    "DynamicPlace",
    "DynamicRearrange",
    "Episodes",
    "HouseTask",
    "MobilePick",
    "Navigate",
    "Place",
    "Rearrange",
    "fetch_episodes",
    "grasp_episodes",
    "visit_episodes",
]
