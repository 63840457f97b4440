"""Multi- and many-objective algorithms, one file each."""

from jaxgpu.evolution.multi.hype import HypE
from jaxgpu.evolution.multi.moead import MOEAD, moead
from jaxgpu.evolution.multi.nsga2 import NSGA2
from jaxgpu.evolution.multi.nsga3 import NSGA3
from jaxgpu.evolution.multi.rvea import RVEA

__all__ = ["HypE", "MOEAD", "NSGA2", "NSGA3", "RVEA", "moead"]
