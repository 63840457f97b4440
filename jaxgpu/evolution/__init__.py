"""Tensorized evolutionary optimisation, of one objective or many."""

from jaxgpu.evolution.solve import Solution, minimize
from jaxgpu.evolution.space import Boolean, Categorical, Integer, Permutation, Real

__all__ = ["Boolean", "Categorical", "Integer", "Permutation", "Real", "Solution", "minimize"]
