"""Meshes as tools: their distances against those of the exact shapes."""

import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

from jaxgpu.geometry import sdf
from jaxgpu.geometry.meshes import voxelize

SPACING = 0.05


def compare(made, exact, seed, away):
    """Return the maximum errors at random points with a smooth exact slope and at all points."""
    x = np.random.default_rng(seed).uniform(-0.5, 0.5, (400, 3)).astype(np.float32)
    points = tuple(jnp.asarray(x.T))
    error = np.abs(np.asarray(made.distance(points) - exact.distance(points)))
    return error[away(x)].max(), error.max()


@pytest.mark.slow
def test_a_box_and_a_ball(tmp_path):
    half = (0.3, 0.2, 0.25)
    trimesh.creation.box(2 * np.array(half)).export(tmp_path / "box.stl")
    made = voxelize(tmp_path / "box.stl", SPACING)

    def is_smooth(x):  # one cell from every place where the nearest face changes
        q = np.sort(np.abs(x) - half, 1)
        return (q[:, 2] - q[:, 1] > 1.5 * SPACING) & (q[:, 1] < -SPACING) & (q[:, 2] < SPACING)

    smooth, every = compare(made, sdf.Box(half), 0, is_smooth)
    assert smooth < 1e-5  # linear there, so that only float32 rounds
    assert every < SPACING * 3**0.5 / 2 + SPACING  # at corners, and beyond the grid a bound
    radius = 0.3
    ball = voxelize(trimesh.creation.icosphere(4, radius), SPACING)
    # Facets are inside the sphere by e^2 / 8 r at most; trilinear slopes err by 3 h^2 / 8 r' r'.
    is_inside = lambda x: (np.linalg.norm(x, axis=1) > 0.15) & np.all(np.abs(x) < 0.4, 1)
    smooth, _ = compare(ball, sdf.Ball(radius), 1, is_inside)
    assert smooth < 0.03**2 / (8 * radius) + 3 * SPACING**2 / (8 * 0.15)


def test_meshes_that_enclose_nothing_are_refused(tmp_path):
    mesh = trimesh.creation.box((1.0, 1.0, 1.0))
    mesh.update_faces(np.arange(12) > 0)
    mesh.export(tmp_path / "open.stl")
    with pytest.raises(ValueError, match="open.stl: 3 of 18 edges do not join two faces") as caught:
        voxelize(tmp_path / "open.stl", 0.1)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="spacing=0"):
        voxelize(trimesh.creation.box((1.0, 1.0, 1.0)), 0.0)


@pytest.mark.parametrize("name, text", [("a.stl", ""), ("a.obj", "f 1 2 3"), ("a.ply", "ply\nx")])
def test_a_damaged_file_is_refused(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=f"voxelize: {name}: "):
        voxelize(tmp_path / name, 0.1)


@pytest.mark.parametrize("name", ["a.dae", "a.3mf", "a.svg", "a"])
def test_no_reader_of_xml_is_started(name, tmp_path):
    (tmp_path / name).write_text("<a/>")
    with pytest.raises(ValueError, match=r"it must be \.stl, \.obj"):
        voxelize(tmp_path / name, 0.1)


def test_a_missing_file_and_what_is_no_mesh_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no such file; give the path"):
        voxelize(tmp_path / "a.stl", 0.1)
    with pytest.raises(TypeError, match="mesh=3; it must be a trimesh.Trimesh"):
        voxelize(3, 0.1)
