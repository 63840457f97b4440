"""Meshes that collide by their signed distance: grid and surface points of each mesh."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.geometry.meshes import voxelize
from jaxgpu.inputs import ranges
from jaxgpu.inputs.arguments import format_value
from jaxgpu.inputs.extras import extra

from ..collision.kernels import GEOM_TYPES
from ..collision.sdf_contacts import NUM_PATCHES, PATCH_POINTS, DistanceField, group_points

_DRAWN, _SHARP = 8192, 0.35  # candidate points; rad between faces at a sharp edge
_POINTS_PER_EDGE = 16  # candidate points on each sharp edge
# A shape matches a mesh if this fraction of its points is this close, relative to the mesh's size.
_SHARED, _NEAR = 0.1, 0.02


def field_indices(m: Any, sdf: Mapping[str, Any] | None) -> tuple[int, ...]:
    """Return for each geom the index of its shape in `sdf`, or -1.

    Raises:
        ValueError, TypeError: a name that no geom has, or a geom that is not a mesh.
    """
    if sdf is None:
        return (-1,) * m.ngeom
    if not isinstance(sdf, Mapping):
        raise TypeError(f"load: sdf={format_value(sdf)}; it must be a dictionary of names of geoms")
    names = [m.geom(i).name for i in range(m.ngeom)]
    for name in sdf:
        if name not in names:
            there = [each for each in names if each]
            raise ValueError(f"load: sdf has no geom {name!r}; the file has {there}; name one")
        if GEOM_TYPES[m.geom_type[names.index(name)]] != "mesh":
            raise ValueError(f"load: sdf names the geom {name!r}; it must be a mesh")
    order = [*sdf]
    return tuple(order.index(name) if name in order else -1 for name in names)


def make_fields(m: Any, sdf: Mapping[str, Any] | None, dtype: Any) -> tuple[DistanceField, ...]:
    """Return the fields of the geoms that are named in `sdf`, in its order.

    Raises:
        ValueError: a mesh that is not closed, or a spacing that is not positive.
    """
    return tuple(_make_field(m, name, given, dtype) for name, given in (sdf or {}).items())


def _make_field(m: Any, name: str, given: Any, dtype: Any) -> DistanceField:
    trimesh = extra("trimesh", "mesh", f"load: sdf={{{name!r}}}")
    at = int(m.geom(name).dataid[0])
    corners = m.mesh_vert[m.mesh_vertadr[at] :][: m.mesh_vertnum[at]]
    faces = m.mesh_face[m.mesh_faceadr[at] :][: m.mesh_facenum[at]]
    mesh = trimesh.Trimesh(np.array(corners, float), np.array(faces))
    # MuJoCo has moved the mesh to its centre of mass and rotated it to its principal axes.
    pos, rot, shape = np.array(m.mesh_pos[at]), _to_matrix(m.mesh_quat[at]), given
    said, thin = f"load: sdf[{name!r}]", float(min(mesh.extents))
    if isinstance(given, type) or not hasattr(given, "distance"):
        spacing = float(ranges.numbers(said, given, (), above=0, unit="m"))
        if spacing > thin / 2:
            raise ValueError(
                f"{said}={spacing:g}; the mesh is {thin:g} m thin; give half of it at most"
            )
        pos, rot, shape = np.zeros(3), np.eye(3), voxelize(mesh, spacing)
    else:
        ranges.check(said, given)
    points, normals = _sample_surface(trimesh, mesh)
    cast = lambda leaf: jnp.asarray(leaf, dtype)
    cut = group_points(points, normals, NUM_PATCHES)
    field = DistanceField(
        shape=jax.tree.map(cast, shape), pos=cast(pos), rot=cast(rot), points=cast(cut)
    )
    _check_match(said, field, float(max(mesh.extents)))
    return field


def _check_match(said: str, field: DistanceField, size: float) -> None:
    """Raise an error if a shape does not match the mesh, as with other units or axes."""
    try:
        off = np.asarray(field.distance(tuple(jnp.moveaxis(field.points, -1, 0))))
    except (TypeError, ValueError, IndexError) as error:
        why = " ".join(str(error).split())[:120]
        raise TypeError(f"{said}: its distance cannot be computed; {why}") from error
    near = float(np.mean(np.abs(off) < _NEAR * size)) if off.shape == field.points.shape[:2] else 0
    if near < _SHARED:
        raise ValueError(
            f"{said}: only {near:.0%} of the mesh's surface matches that of the shape; give it in "
            "metres and in the axes of the mesh's file"
        )


def _to_matrix(quat: np.ndarray) -> np.ndarray:
    turned = np.zeros(9)
    import_module("mujoco").mju_quat2Mat(turned, quat)
    return turned.reshape(3, 3)


def _sample_surface(trimesh: Any, mesh: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a surface by farthest-point sampling, and the normals there."""
    drawn, face = trimesh.sample.sample_surface(mesh, _DRAWN, seed=0)
    sharp = mesh.face_adjacency_angles > _SHARP
    ends = mesh.vertices[mesh.face_adjacency_edges[sharp]]  # [E, 2, 3]
    share = np.linspace(0, 1, _POINTS_PER_EDGE)[None, :, None]
    edges = (ends[:, None, 0] * (1 - share) + ends[:, None, 1] * share).reshape(-1, 3)
    of_edge = np.repeat(mesh.face_adjacency[sharp][:, 0], _POINTS_PER_EDGE)
    points = np.concatenate([edges, drawn])
    normals = mesh.face_normals[np.concatenate([of_edge, face]).astype(int)]
    chosen, apart = [0], np.full(len(points), np.inf)
    for _ in range(NUM_PATCHES * PATCH_POINTS - 1):
        apart = np.minimum(apart, np.sum((points - points[chosen[-1]]) ** 2, 1))
        chosen.append(int(np.argmax(apart)))
    return points[chosen], normals[chosen]
