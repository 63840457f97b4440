"""The hulls of meshes that may touch, as MuJoCo has found them: corners, and edges between them."""

from typing import Any

import numpy as np

from ..collision.kernels import KINDS
from .layout import PairGroup, Table


def numbered(m: Any, groups: tuple[PairGroup, ...]) -> tuple[int, ...]:
    """Which hull each shape has, or -1: only meshes that may touch something have one."""
    ends = {i for group in groups for side in (group.first, group.second) for i in side}
    own = [KINDS[kind] == "mesh" for kind in m.geom_type]
    mesh = [int(data) if is_mesh else -1 for data, is_mesh in zip(m.geom_dataid, own)]
    used = sorted({mesh[i] for i in ends if mesh[i] >= 0})
    return tuple(used.index(x) if i in ends and x >= 0 else -1 for i, x in enumerate(mesh))


def corners(m: Any, which: tuple[int, ...]) -> np.ndarray:
    """[M, N, 3] the corners of each hull in its mesh's frame, m; the first one fills up."""
    points = [np.array(m.mesh_vert[m.mesh_vertadr[i] :][_corners(m, i)]) for i in _meshes(m, which)]
    most = max((len(each) for each in points), default=0)
    filled = (np.concatenate([x, np.tile(x[:1], (most - len(x), 1))]) for x in points)
    return np.array([*filled]).reshape(len(points), most, 3)


def edges(m: Any, which: tuple[int, ...]) -> Table:
    """[M, N, D] the corners that an edge joins to each, in MuJoCo's order."""
    rows = [_joined(m, mesh) for mesh in _meshes(m, which)]
    most = max((len(row) for row in rows), default=0)
    wide = max((len(each) for row in rows for each in row), default=0)
    out = np.full((len(rows), most, wide), -1, np.int32)
    for i, row in enumerate(rows):
        for j, each in enumerate(row):
            out[i, j, : len(each)] = each
    return Table(out.shape, out.tobytes())


def _meshes(m: Any, which: tuple[int, ...]) -> list[int]:
    """The mesh of each hull."""
    mesh = {hull: int(m.geom_dataid[i]) for i, hull in enumerate(which) if hull >= 0}
    return [mesh[hull] for hull in sorted(mesh)]


def _graph(m: Any, mesh: int) -> np.ndarray | None:
    """MuJoCo's graph of a hull: counts, first edges of corners, corners, edges."""
    at = int(m.mesh_graphadr[mesh])
    return m.mesh_graph[at:] if at >= 0 else None


def _corners(m: Any, mesh: int) -> np.ndarray:
    """Which points of a mesh are corners of its hull: all, if MuJoCo looked for none."""
    graph = _graph(m, mesh)
    if graph is None:
        return np.arange(m.mesh_vertnum[mesh])
    count = int(graph[0])
    return graph[2 + count : 2 + 2 * count]


def _joined(m: Any, mesh: int) -> list[list[int]]:
    """The corners next to each; all others, if MuJoCo looked for no hull."""
    graph = _graph(m, mesh)
    if graph is None:
        count = int(m.mesh_vertnum[mesh])
        return [[j for j in range(count) if j != i] for i in range(count)]
    count = int(graph[0])
    listed = graph[2 + 2 * count :]
    rows = []
    for first in graph[2 : 2 + count]:
        row = listed[int(first) :]
        rows.append([int(j) for j in row[: int(np.argmax(row < 0))]])
    return rows
