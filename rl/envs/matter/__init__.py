"""Tasks of manipulating liquids and solids: actions control a tool, materials are simulated.

Read `task` first: the environment `MatterTask`, the `Goal` that it is given, its state, and its
actions. Each task is a file that makes a scene and a goal: `pouring` (goal `PourGoal`), `gathering`
(`GatherGoal`), `transporting` (`TransportGoal`), and in the cup of `cup` `mixing` (`SpreadGoal`)
and `latte_art`. `latte_art` and `ice_cream` imitate a demonstration (`matching`, `MatchGoal`). They
are built from `shapes` (the glass), `inflow` (nozzles) and `workspace` (limits of the tool);
`rendering` draws them. By name they are `rl.make("matter/...")`.
"""

from . import gathering, ice_cream, latte_art, mixing, pouring, transporting
from .gathering import GatherGoal
from .matching import MatchGoal
from .mixing import SpreadGoal
from .pouring import PourGoal
from .task import Goal, MatterTask, with_soft_contact
from .transporting import TransportGoal
from .workspace import BoxWorkspace, CylinderWorkspace, Unbounded

__all__ = [
    "BoxWorkspace",
    "CylinderWorkspace",
    "GatherGoal",
    "Goal",
    "MatchGoal",
    "MatterTask",
    "PourGoal",
    "SpreadGoal",
    "TransportGoal",
    "Unbounded",
    "gathering",
    "ice_cream",
    "latte_art",
    "mixing",
    "pouring",
    "transporting",
    "with_soft_contact",
]
