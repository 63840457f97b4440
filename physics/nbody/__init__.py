"""Star clusters and planetary systems, with tracers, which have no mass; G = 1.

Clusters: `evolve` is the one call; `Hermite` and `Hermite6` say how to integrate, `Cluster` who
escapes. Planets: `integrate`, with `Planetary`, `WisdomHolman` or `Leapfrog`; many small systems
are an `Ensemble`. Bodies are x [N, 3], v [N, 3] and m [N] everywhere.

Read the rooms from the ground up: `units`, `bodies`; `orbits` (two bodies), `steps` (integrators
of any force), `measure` (what one asks of clusters); `forces` (pairs, fields, relativity), `models`
(clusters to begin with); `clusters`, `planets`. A room imports from those before it alone.
"""

from . import clusters, forces, measure, models, orbits, planets, steps, units
from .clusters import Cluster, Evolution, Hermite, Hermite6, Pairing, evolve
from .measure import bound_pairs, core, energy, lagrangian_radii
from .models import binary_orbits, globulars, king, kroupa, paired, plummer, snapshots, virial
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
    "paired",
    "planets",
    "plummer",
    "snapshots",
    "steps",
    "units",
    "virial",
]
