"""Tasks of manipulating liquids and solids: actions control a tool, materials are simulated.

Read `task` first: the environment `Matter`, the `Goal` that it is given, its state, and its
actions. Each task is a file that makes a scene and a goal: `pouring` (goal `Pour`), `gathering`
(`Gather`), `transporting` (`Transport`), and in the cup of `cup` `mixing` (`Spread`) and
`latte_art`. `latte_art` and `ice_cream` imitate a demonstration (`matching`, `Match`). They are
built from `shapes` (the glass), `inflow` (nozzles) and `workspace` (limits of the tool);
`rendering` draws them. By name they are `rl.make("matter/...")`.
"""

from . import gathering, ice_cream, latte_art, mixing, pouring, transporting
from .gathering import Gather
from .matching import Match
from .mixing import Spread
from .pouring import Pour
from .task import Goal, Matter, with_soft_contact
from .transporting import Transport
from .workspace import BoxWorkspace, CylinderWorkspace, Unbounded

__all__ = [
    "BoxWorkspace",
    "CylinderWorkspace",
    "Gather",
    "Goal",
    "Match",
    "Matter",
    "Pour",
    "Spread",
    "Transport",
    "Unbounded",
    "gathering",
    "ice_cream",
    "latte_art",
    "mixing",
    "pouring",
    "transporting",
    "with_soft_contact",
]
