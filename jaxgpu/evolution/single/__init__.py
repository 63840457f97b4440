"""Single-objective algorithms, under the protocol of `jaxgpu.evolution.protocol`."""

from jaxgpu.evolution.single.cma import CMAES, default_population
from jaxgpu.evolution.single.gradients import OpenES, pgpe
from jaxgpu.evolution.single.lm_ma import LMMAES
from jaxgpu.evolution.single.lshade import LSHADE
from jaxgpu.evolution.single.restarts import Restarts
from jaxgpu.evolution.single.sep_cma import SepCMAES
from jaxgpu.evolution.single.snes import SNES
from jaxgpu.evolution.single.swarm import CSO, PSO
from jaxgpu.evolution.single.xnes import XNES

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
