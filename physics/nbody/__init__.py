"""Collisional star clusters and planetary systems, with massless bodies, the tracers; G = 1.

Clusters: `evolve` is the one call; `Hermite` and `Hermite6` say how to integrate, `Cluster` who
escapes. Planets: `integrate`, with `Planetary`, `WisdomHolman` or an `Ensemble` of small systems.
Bodies are x [N, 3], v [N, 3] and m [N] everywhere.

Read the rooms from the ground up: `units`, `bodies`; `orbits` (two bodies), `steps` (integrators
of any force), `measure` (what one asks of a cluster); `forces` (pairs, fields, relativity), `models`
(clusters to begin with); `clusters`, `planets`. A room imports from those before it alone.
"""

from . import clusters, forces, measure, models, orbits, planets, steps, units
from .clusters import Cluster, Evolution, Hermite, Hermite6, Pairing, evolve
from .measure import bound_pairs, core, energy, lagrangian_radii
from .models import binary_orbits, globulars, king, kroupa, paired, plummer, snapshots, virial
from .orbits import Elements
from .planets import Ensemble, Planetary, WisdomHolman, integrate

__all__ = [
    "Cluster",
    "Elements",
    "Ensemble",
    "Evolution",
    "Hermite",
    "Hermite6",
    "Pairing",
    "Planetary",
    "WisdomHolman",
    "binary_orbits",
    "bound_pairs",
    "clusters",
    "core",
    "energy",
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
