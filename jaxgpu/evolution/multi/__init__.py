"""Multi- and many-objective algorithms, one module each.

Reading order: `variation` makes offspring of two parents, `mating` selects parents and ranks
parents and offspring together, and `nsga2` is the shortest algorithm. `reference_directions` and
`niching` belong to `nsga3`. `moead` and `rvea` use only the directions, `hype` the volumes along
rays of `indicators`.
"""

from .hype import HypE
from .moead import MOEAD
from .nsga2 import NSGA2
from .nsga3 import NSGA3
from .reference_directions import (
    ReferenceDirections,
    associate,
    das_dennis,
    layers_for,
    partitions_for,
)
from .rvea import RVEA
from .variation import SBX, PolynomialMutation

__all__ = [
    "HypE",
    "MOEAD",
    "NSGA2",
    "NSGA3",
    "PolynomialMutation",
    "RVEA",
    "ReferenceDirections",
    "SBX",
    "associate",
    "das_dennis",
    "layers_for",
    "partitions_for",
]
