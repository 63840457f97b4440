"""Single-objective algorithms, under the protocol of `jaxgpu.evolution.protocol`."""

from .cma import CMAES, default_population
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
    "default_population",
    "pgpe",
]
