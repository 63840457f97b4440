"""Multi- and many-objective algorithms, one file each."""

from .hype import HypE
from .moead import MOEAD, moead
from .nsga2 import NSGA2
from .nsga3 import NSGA3
from .rvea import RVEA

__all__ = ["HypE", "MOEAD", "NSGA2", "NSGA3", "RVEA", "moead"]
