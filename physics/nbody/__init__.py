"""Star clusters and planetary systems, with tracers, which have no mass; G = 1.

Clusters: call `evolve`. `Hermite` and `Hermite6` hold the settings of the integration, `Cluster`
those of escapes. Planets: call `integrate` with `Planetary`, `WisdomHolman` or `Leapfrog`; many
small systems form an `Ensemble`. Bodies are x [N, 3], v [N, 3] and m [N] everywhere.

Read from the bottom up: `units`, `validation`; `orbits` (two bodies), `steps` (integrators of any
force), `measure` (diagnostics of clusters); `forces` (pairs, fields, relativity), `models` (initial
conditions of clusters); `clusters`, `planets`. A package imports only from those before it.
"""

from . import clusters, forces, measure, models, orbits, planets, steps, units
from .clusters import Cluster, Evolution, Hermite, Hermite6, Pairing, evolve
from .measure import bound_pairs, core, energy, lagrangian_radii
from .models import (
    add_companions,
    binary_orbits,
    globulars,
    king,
    kroupa,
    plummer,
    snapshots,
    virialize,
)
from .orbits import Elements
from .planets import Ensemble, Planetary, WisdomHolman, ephemeris, integrate
from .steps import Leapfrog

__all__ = [
    "Cluster",
    "Elements",
    "Ensemble",
    "Evolution",
    "Hermite",
    "Hermite6",
    "Leapfrog",
    "Pairing",
    "Planetary",
    "WisdomHolman",
    "binary_orbits",
    "bound_pairs",
    "clusters",
    "core",
    "energy",
    "ephemeris",
    "evolve",
    "forces",
    "globulars",
    "integrate",
    "king",
    "kroupa",
    "lagrangian_radii",
    "measure",
    "models",
    "orbits",
    "add_companions",
    "planets",
    "plummer",
    "snapshots",
    "steps",
    "units",
    "virialize",
]
