"""Differentiable matter: liquids, solids and grains on one grid, in SI units."""
