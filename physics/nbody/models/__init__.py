"""Initial conditions of clusters: spheres, masses, binaries, Milky Way globulars, snapshots.

Read `spheres` (Plummer, and N-body units), `king_models` (King), `masses`, `binaries` (binaries),
`globulars` (ten of the Milky Way) and `snapshots` (files of NBODY6 and McLuster).
"""

from . import globulars, snapshots
from .binaries import add_companions, binary_orbits
from .king_models import king
from .masses import MassFunction, kroupa, mean_mass, quantile, salpeter, sample_masses
from .spheres import PLUMMER_RADIUS, plummer, virialize

__all__ = [
    "PLUMMER_RADIUS",
    "MassFunction",
    "binary_orbits",
    "sample_masses",
    "globulars",
    "king",
    "kroupa",
    "mean_mass",
    "add_companions",
    "plummer",
    "quantile",
    "salpeter",
    "snapshots",
    "virialize",
]
