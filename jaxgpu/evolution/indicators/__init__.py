"""Quality indicators of a set of objective vectors; all minimised objectives, all jit and vmap."""

from .contributions import contributions
from .distances import epsilon, epsilon_ratio, gd, gd_plus, igd, igd_plus, spacing
from .hypervolume import hypervolume
from .rays import Volume, hypervolume_by_rays
from .utilities import expected_utility, r2

__all__ = [
    "Volume",
    "contributions",
    "epsilon",
    "epsilon_ratio",
    "expected_utility",
    "gd",
    "gd_plus",
    "hypervolume",
    "hypervolume_by_rays",
    "igd",
    "igd_plus",
    "r2",
    "spacing",
]
