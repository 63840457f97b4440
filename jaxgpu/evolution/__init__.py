"""Tensorized evolutionary optimisation, of one objective or many."""

from .solve import Solution, minimize
from .space import Boolean, Categorical, Integer, Permutation, Real

__all__ = ["Boolean", "Categorical", "Integer", "Permutation", "Real", "Solution", "minimize"]
