"""One job of many processes: each has its own devices, and all of them run the same program.

Read `start` (how the processes find each other) first, then `group` (what they tell each other),
`arrays` (values that lie in several processes), `watch` (what happens when one of them ends) and
`parts` (a checkpoint that all of them write).
"""

from .arrays import blocks, place, spans
from .group import ALONE, Group, joined, leads
from .start import distributed
from .watch import Watch

__all__ = ["ALONE", "Group", "Watch", "blocks", "distributed", "joined", "leads", "place", "spans"]
