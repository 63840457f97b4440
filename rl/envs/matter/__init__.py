"""Tasks of handling liquids and solids: the tool is led, matter follows its laws.

Read `task` first: the environment `Matter`, the `Goal` that it is given, its state, and what an
action does. A task is a file that makes a scene and a goal: `pouring` (goal `Pour`), `gathering`
(`Gather`), `transporting` (`Transport`), and in the cup of `cup` `mixing` (`Spread`) and
`latte_art`; that one and `ice_cream` are to be done as shown (`matching`, `Match`). They are built
from `shapes` (the glass), `inflow` (nozzles) and `workspace` (where the tool may be); `rendering`
draws them. By name they are `rl.make("matter/...")`.
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
