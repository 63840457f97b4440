"""Vectors, rotations, shapes and points that fill them, shared by all domain packages.

Read `vectors` first (vectors as tuples of arrays, so that XLA fuses across components) and `rows`
(a few functions on arrays [..., 3]). Then read `rotations` (angles, and quaternions w x y z) and
`sdf` (shapes by signed distance; long or round shapes are aligned with the last axis, z in 3-D).
`sockets` and `threads` have blocks with a hole, bolts and nuts, `meshes` closed meshes as such
shapes, and `point_grid` the points that fill shapes. `rays` has the distances along rays to simple
shapes, `solids` scenes of such shapes in arrays.
"""

from . import rays, rotations, rows, sdf, sockets, solids, threads, vectors
from .meshes import voxelize
from .point_grid import fill_box

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
    "voxelize",
]
