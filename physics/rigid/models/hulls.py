"""Convex hulls of meshes that can collide: the vertices that MuJoCo has found."""

from typing import Any

import numpy as np

from ..collision.kernels import GEOM_TYPES
from .layout import PairGroup


def hull_indices(m: Any, groups: tuple[PairGroup, ...]) -> tuple[int, ...]:
    """Return the hull index of each geom; -1 unless it is a mesh that can collide."""
    ends = {i for group in groups for side in (group.first, group.second) for i in side}
    own = [GEOM_TYPES[kind] == "mesh" for kind in m.geom_type]
    mesh = [int(data) if is_mesh else -1 for data, is_mesh in zip(m.geom_dataid, own)]
    used = sorted({mesh[i] for i in ends if mesh[i] >= 0})
    return tuple(used.index(x) if i in ends and x >= 0 else -1 for i, x in enumerate(mesh))


def hull_vertices(m: Any, which: tuple[int, ...]) -> np.ndarray:
    """Return the vertices [M, N, 3] of hulls in mesh frames, m, padded with the first vertex."""
    mesh = {hull: int(m.geom_dataid[i]) for i, hull in enumerate(which) if hull >= 0}
    points = [
        np.array(m.mesh_vert[m.mesh_vertadr[i] :][_hull_vertex_indices(m, i)])
        for _, i in sorted(mesh.items())
    ]
    most = max((len(each) for each in points), default=0)
    filled = (np.concatenate([x, np.tile(x[:1], (most - len(x), 1))]) for x in points)
    return np.array([*filled]).reshape(len(points), most, 3)


def _hull_vertex_indices(m: Any, mesh: int) -> np.ndarray:
    """Return the indices of the mesh vertices on its hull: all if MuJoCo built no hull."""
    at = int(m.mesh_graphadr[mesh])
    if at < 0:
        return np.arange(m.mesh_vertnum[mesh])
    count = int(m.mesh_graph[at])  # then numface, vert_edgeadr [count], vert_globalid [count]
    return m.mesh_graph[at + 2 + count : at + 2 + 2 * count]
