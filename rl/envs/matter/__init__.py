"""Tasks of handling liquids and solids: the tool is led, matter follows its laws."""

from .gathering import Gather, gathering_easy
from .icecream import ice_cream_static
from .latte import latte_art_stir
from .matching import Match
from .mixing import Spread, mixing
from .pouring import Pour, pouring
from .softened import softened
from .task import Matter
from .transporting import Transport, transporting

__all__ = [
    "Gather",
    "Match",
    "Matter",
    "Pour",
    "Spread",
    "Transport",
    "gathering_easy",
    "ice_cream_static",
    "latte_art_stir",
    "mixing",
    "pouring",
    "softened",
    "transporting",
]
