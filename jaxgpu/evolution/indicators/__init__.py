"""Quality indicators of a set of minimised objective vectors; all work with jit and vmap.

Reading order: `arguments` checks the arguments of the indicators. `volume` has the exact
hypervolume, `exclusive_volume` the exclusive contribution of each point, `rays` an estimate of both
for any number of objectives. `distances` and `utilities` compare a set with a reference front or by
weight vectors.
"""

from .distances import epsilon, epsilon_ratio, gd, gd_plus, igd, igd_plus, spacing
from .exclusive_volume import contributions
from .rays import VolumeEstimate, hypervolume_by_rays
from .utilities import expected_utility, r2
from .volume import hypervolume

__all__ = [
    "VolumeEstimate",
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
