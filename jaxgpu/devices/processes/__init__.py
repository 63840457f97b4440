"""Jobs of many processes: each has its own devices, and all run the same program.

Read `start` (how the processes find each other) first, then `group` (messages between them),
`arrays` (arrays that span several processes), `watchdog` (how the others end when one ends) and
`parts` (a checkpoint that all of them write).
"""

from .arrays import blocks, place, spans
from .group import ALONE, Group, is_leader, sharding_group
from .start import distributed
from .watchdog import Watchdog

__all__ = [
    "ALONE",
    "Group",
    "Watchdog",
    "blocks",
    "distributed",
    "sharding_group",
    "is_leader",
    "place",
    "spans",
]
