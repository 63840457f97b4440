"""Regularised pairs of stars: hard binaries in Kustaanheimo-Stiefel variables.

Read `ks_pairs` (the data of a pair), `members` (states of its two stars), `forces` (its forces on
others), `ks_steps` (the integration of its orbit) and `formation` (its formation and dissolution).
"""

from .ks_pairs import Pair, Pairs

__all__ = ["Pair", "Pairs"]
