"""Tasks of Fetch in houses, by name `rl.make("rearrange/<task>")`.

Read `episodes` first (what is to be fetched, and from where; made on the host), then `task` (state,
observations, rewards), `navigate`, and `carry` with its tasks in `rearranging`. `standard` has the
houses for whoever gives none, `scene` what a picture shows.
"""

from .carry import Carry
from .episodes import Episodes, fetching, visiting
from .navigate import Navigate
from .rearranging import MobilePick, Place, Rearrange
from .task import HouseTask

__all__ = [
    "Carry",
    "Episodes",
    "HouseTask",
    "MobilePick",
    "Navigate",
    "Place",
    "Rearrange",
    "fetching",
    "visiting",
]
