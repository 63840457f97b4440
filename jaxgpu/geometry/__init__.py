"""Vectors, rotations, shapes and what fills them: one of each, for all pillars.

Read `vectors` first (a vector as a tuple of arrays, so that XLA fuses across its components) and
`rows` (the few that act on arrays [..., 3]), then `rotations` (angles, and quaternions w x y z),
`sdf` (shapes by their signed distance; what is long or round lies along the last axis, z in space),
`sockets` and `threads` (blocks with a hole, bolts and nuts), `meshes` (closed meshes as such
shapes) and `fill` (points that fill them). `rays` has the distances along rays to simple shapes,
`solids` whole scenes of such shapes in arrays.
"""

from . import rays, rotations, rows, sdf, sockets, solids, threads, vectors
from .fill import fill_box
from .meshes import voxels

__all__ = [
    "fill_box",
    "rays",
    "rotations",
    "rows",
    "sdf",
    "sockets",
    "solids",
    "threads",
    "vectors",
    "voxels",
]
