"""Where two shapes touch: distances, places and frames of contacts, by MuJoCo's conventions.

Read `shape` (what goes in and comes back), `kernels` (the table of pairs), then `planes`, `rounds`,
`boxes`, `box_box` and `cylinders`. What the table does not name is for `convex`: `hull` (the form
of any shape), `expansion` (the polytope) and `patches` (flats on one another); `heights`
takes what lies on a height field, `fields` what has a signed distance; `batches` takes all pairs of
a kind. A kernel takes one pair; `jax.vmap` takes many. Kernels give every candidate
point, near or far: whoever calls keeps those with a distance below the margin.
"""

from .kernels import KERNELS, KINDS, Kernel
from .shape import FAR, Shape, Touch

__all__ = ["FAR", "KERNELS", "KINDS", "Kernel", "Shape", "Touch"]
