"""Initial conditions of clusters: spheres, masses, binaries, Milky Way globulars, snapshots.

Read `spheres` (Plummer, and N-body units), `lowered` (King), `masses`, `primordial` (binaries),
`globulars` (ten of the Milky Way) and `snapshots` (files of NBODY6 and McLuster).
"""

from . import globulars, snapshots
from .lowered import king
from .masses import MassFunction, draw, kroupa, mean, quantile, salpeter
from .primordial import binary_orbits, paired
from .spheres import PLUMMER_RADIUS, plummer, virial

__all__ = [
    "PLUMMER_RADIUS",
    "MassFunction",
    "binary_orbits",
    "draw",
    "globulars",
    "king",
    "kroupa",
    "mean",
    "paired",
    "plummer",
    "quantile",
    "salpeter",
    "snapshots",
    "virial",
]
