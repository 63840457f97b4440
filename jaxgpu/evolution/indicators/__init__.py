"""Quality indicators of a set of objective vectors; all minimised objectives, all jit and vmap.

Reading order: `sets` checks what the indicators are given; `volume` has the exact hypervolume,
`exclusive` what each point adds to it, `rays` both for any number of objectives; `distances` and
`utilities` compare with a front or with weights.
"""

from .distances import epsilon, epsilon_ratio, gd, gd_plus, igd, igd_plus, spacing
from .exclusive import contributions
from .rays import Volume, hypervolume_by_rays
from .utilities import expected_utility, r2
from .volume import hypervolume

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
