"""Collision of two shapes: distances, positions and frames of contacts, by MuJoCo's conventions.

Read `shape` (input and output), `kernels` (the table of pairs), then `planes`, `round_shapes`,
`boxes`, `box_box` and `cylinders`. Pairs outside the table use `convex`, with `hull` (one form for
all convex shapes), `expansion` (the polytope) and `flat_faces` (contacts between flat faces).
`height_field` handles height fields, `sdf_contacts` signed distances, and `batches` all pairs of a
type. A kernel takes one pair; `jax.vmap` takes many. Kernels return every candidate point at any
distance, and the caller keeps those with a distance below the margin.
"""

from .kernels import GEOM_TYPES, KERNELS, Kernel
from .shape import FAR, Collision, Shape

__all__ = ["FAR", "KERNELS", "GEOM_TYPES", "Kernel", "Shape", "Collision"]
