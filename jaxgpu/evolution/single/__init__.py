"""Single-objective algorithms, one module each.

Reading order: `ranking` has what all share: weights by rank and the best candidate. `bounds` maps
samples into the box, and `strategy` is the base class of the strategies; `snes` is the shortest of
them. `adaptation` has the rates of the CMA family: `cma`, `sep_cma`, `lm_ma`, and `restarts` of
`cma`. `xnes` and `gradients` follow natural and plain gradients; `lshade` and `swarm` move a
population.
"""

from .cma import CMAES, default_pop_size
from .gradients import OpenES, pgpe
from .lm_ma import LMMAES
from .lshade import LSHADE
from .restarts import Restarts
from .sep_cma import SepCMAES
from .snes import SNES
from .swarm import CSO, PSO
from .xnes import XNES

__all__ = [
    "CMAES",
    "CSO",
    "LMMAES",
    "LSHADE",
    "OpenES",
    "PSO",
    "Restarts",
    "SNES",
    "SepCMAES",
    "XNES",
    "default_pop_size",
    "pgpe",
]
