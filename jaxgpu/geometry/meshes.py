"""Closed triangle meshes as tools: signed distances on a regular grid, computed once.

Distances come from trimesh (the extra `mesh`) and are interpolated trilinearly, with gradients of
the interpolant: exact on faces, off by up to half a cell at edges and corners.
"""

import math
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgpu.devices import memory
from jaxgpu.inputs import ranges
from jaxgpu.inputs.arguments import format_value
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.extras import extra

from .sdf import Voxels

FORMATS = (".stl", ".obj", ".ply", ".off", ".glb", ".gltf")


@explain_errors
@on_host
def voxelize(mesh: Any, spacing: float, margin: float = 0.0) -> Voxels:
    """Return the signed distance of a closed mesh on a grid, float32, in the mesh's own frame.

    Args:
        mesh: a `trimesh.Trimesh` in metres, or a file of one: stl, obj, ply, off, glb or gltf. XML
            formats are rejected, because they allow entities and deep nesting.
        spacing: grid spacing, m; a simulation's dx or finer.
        margin: how far the grid extends outside the mesh, m; at least two spacings. Tools act one
            dx ahead, so use 2 dx if the spacing is finer than that.
    Raises:
        ValueError: the file is missing, of another format or damaged; the mesh has edges that do
            not join two faces, or encloses no volume.
        ModuleNotFoundError: the extra `mesh` is not installed.
    Cost: some 50 microseconds per grid point, once; keep the result for the next run.

    >>> import trimesh
    >>> import jax.numpy as jnp
    >>> ball = voxelize(trimesh.creation.icosphere(radius=1.0), spacing=0.25, margin=0.5)
    >>> round(float(ball.distance(tuple(jnp.array([1.4, 0.0, 0.0])))), 1)
    0.4
    """
    trimesh = extra("trimesh", "mesh", "voxelize")
    name = "voxelize"
    if isinstance(mesh, str | Path):
        name, mesh = f"voxelize: {Path(mesh).name}", _read(trimesh, Path(mesh))
    if not isinstance(mesh, trimesh.Trimesh):
        raise TypeError(
            f"{name}: mesh={format_value(mesh)}; it must be a trimesh.Trimesh or a mesh file"
        )
    ranges.numbers(f"{name}: spacing", spacing, (), above=0, unit="m")
    ranges.numbers(f"{name}: margin", margin, (), least=0, unit="m")
    if not len(mesh.faces) or not np.isfinite(mesh.vertices).all():
        raise ValueError(
            f"{name}: no faces, or vertices that are not finite; it must be a closed mesh"
        )
    if not mesh.is_watertight:
        edges = trimesh.grouping.group_rows(mesh.edges_sorted, require_count=2)
        odd = len(mesh.edges_unique) - len(edges)
        raise ValueError(
            f"{name}: {odd} of {len(mesh.edges_unique)} edges do not join two faces; it must be "
            "watertight; close it, for instance with trimesh.repair.fill_holes"
        )
    if not abs(mesh.volume) > 0:
        raise ValueError(f"{name}: the mesh encloses no volume; give one that does")
    reach = max(margin, 2 * spacing)
    lower, upper = mesh.bounds[0] - reach, mesh.bounds[1] + reach
    counts = np.ceil((upper - lower) / spacing).astype(int) + 1
    memory.check_size(f"{name}: spacing={spacing:g}", 80 * math.prod(counts.tolist()), "widen it")
    axes = [a + np.arange(n) * spacing for a, n in zip(lower, counts)]
    points = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], 1)
    outside = -trimesh.proximity.signed_distance(mesh, points)
    values = jnp.asarray(outside.reshape(counts), jnp.float32)
    return Voxels(values, jnp.asarray(lower, jnp.float32), spacing)


def _read(trimesh: Any, file: Path) -> Any:
    """Read the mesh in a file; no XML reader is started, regardless of the file's content."""
    said = f"voxelize: {file.name}"
    if file.suffix.lower() not in FORMATS:
        raise ValueError(f"{said}: format {file.suffix!r}; it must be {', '.join(FORMATS)}")
    if not file.is_file():
        raise ValueError(f"{said}: no such file; give the path of a mesh")
    try:
        return trimesh.load_mesh(file, file_type=file.suffix[1:].lower())
    except Exception as error:  # any reader may fail on a damaged file
        reason = " ".join(str(error).split())[:80]
        raise ValueError(
            f"{said}: not a mesh ({type(error).__name__}: {reason}); export it again"
        ) from error
