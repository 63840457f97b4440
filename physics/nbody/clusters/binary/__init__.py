"""Regularised pairs of stars: hard binaries in Kustaanheimo-Stiefel variables.

Read `ks_pairs` (what is known of a pair), `members` (where its two stars are), `forces` (what
others feel of it), `ks_steps` (how its orbit goes on) and `formation` (how it begins and ends).
"""

from .ks_pairs import Pair, Pairs

__all__ = ["Pair", "Pairs"]
