"""Jobs of many processes: each has its own devices, and all run the same program.

Read `start` (how the processes find each other) first, then `group` (messages between them),
`arrays` (arrays that span several processes), `watch` (how the others end when one ends) and
`parts` (a checkpoint that all of them write).
"""

from .arrays import blocks, place, spans
from .group import ALONE, Group, joined, leads
from .start import distributed
from .watch import Watch

__all__ = ["ALONE", "Group", "Watch", "blocks", "distributed", "joined", "leads", "place", "spans"]
