"""Tasks of handling liquids and solids: the tool is led, matter follows its laws."""

from jaxgpu.rl.envs.matter.gathering import Gather, gathering_easy
from jaxgpu.rl.envs.matter.icecream import ice_cream_static
from jaxgpu.rl.envs.matter.latte import latte_art_stir
from jaxgpu.rl.envs.matter.matching import Match
from jaxgpu.rl.envs.matter.mixing import Spread, mixing
from jaxgpu.rl.envs.matter.pouring import Pour, pouring
from jaxgpu.rl.envs.matter.softened import softened
from jaxgpu.rl.envs.matter.task import Matter
from jaxgpu.rl.envs.matter.transporting import Transport, transporting

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
