"""Collision of two shapes: distances, positions and frames of contacts, by MuJoCo's conventions.

Read `shape` (input and output), `kernels` (the table of pairs), then `planes`, `rounds`, `boxes`,
`box_box` and `cylinders`. Pairs outside the table use `convex`, with `hull` (one form for all
convex shapes), `expansion` (the polytope) and `patches` (contacts between flat faces). `heights`
handles height fields, `fields` signed distances, and `batches` all pairs of a type. A kernel takes
one pair; `jax.vmap` takes many. Kernels return every candidate point at any distance, and the
caller keeps those with a distance below the margin.
"""

from .kernels import KERNELS, KINDS, Kernel
from .shape import FAR, Shape, Touch

__all__ = ["FAR", "KERNELS", "KINDS", "Kernel", "Shape", "Touch"]
