"""Diagnostics of clusters: energies, core, Lagrangian radii, bound pairs, mass segregation.

Read `diagnostics`, then `segregation`. Positions and velocities are [N, 3], masses [N].
"""

from .diagnostics import (
    Budget,
    Pairs,
    bound_pairs,
    budget,
    class_radii,
    core,
    energy,
    half_mass_relaxation_time,
    lagrangian_radii,
    nearest_star,
    potential,
)
from .segregation import segregation_ratio, tree_edges

__all__ = [
    "Budget",
    "Pairs",
    "bound_pairs",
    "budget",
    "class_radii",
    "core",
    "energy",
    "half_mass_relaxation_time",
    "lagrangian_radii",
    "nearest_star",
    "potential",
    "segregation_ratio",
    "tree_edges",
]
