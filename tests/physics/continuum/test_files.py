"""Other programs' readers read the written files back."""

import sys
from xml.etree import ElementTree

import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

from jaxgpu.physics.continuum import Body, Grid, Liquid, NeoHookean, Scene
from jaxgpu.physics.continuum.files import write

RNG = np.random.default_rng(0)
X = [RNG.uniform(0.2, 0.8, (n, 2)).astype(np.float32) for n in (5, 3)]
BODIES = (Body(jnp.asarray(X[0]), Liquid(), 1e-4, v=(0.5, -1.0), capacity=9),
          Body(jnp.asarray(X[1]), NeoHookean(), 1e-4))  # fmt: skip
STATE = Scene(BODIES, Grid(0.1, (10, 10))).init()


def test_ply_is_read_by_trimesh(tmp_path):
    write(tmp_path / "two.ply", STATE)
    cloud = trimesh.load(tmp_path / "two.ply")
    np.testing.assert_allclose(cloud.vertices[:, :2], np.concatenate(X), rtol=1e-6)
    assert (cloud.vertices[:, 2] == 0).all()
    assert len(np.unique(np.asarray(cloud.colors), axis=0)) == 2


def test_npz_holds_place_speed_and_body_of_filled_slots(tmp_path):
    write(tmp_path / "two.npz", STATE)
    found = np.load(tmp_path / "two.npz")
    np.testing.assert_array_equal(found["x"], np.concatenate(X))
    np.testing.assert_array_equal(found["v"][:5], np.full((5, 2), (0.5, -1.0), np.float32))
    np.testing.assert_array_equal(found["body"], [0] * 5 + [1] * 3)


def vtu(path):
    """Read the arrays of a VTK file by name, by the format's definition: XML, then raw numbers."""
    head, data = path.read_bytes().split(b'<AppendedData encoding="raw">')
    data = data[data.index(b"_") + 1 :]
    tree = ElementTree.fromstring(head + b"</VTKFile>")
    assert tree.attrib["header_type"] == "UInt64" and tree.attrib["byte_order"] == "LittleEndian"
    found = {}
    for array in tree.iter("DataArray"):
        at, kind = int(array.attrib["offset"]), array.attrib["type"].lower()
        size = int(np.frombuffer(data, "<u8", 1, at)[0])
        values = np.frombuffer(data[at + 8 : at + 8 + size], np.dtype(kind).newbyteorder("<"))
        found[array.attrib["Name"]] = values.reshape(-1, int(array.attrib["NumberOfComponents"]))
    piece = next(tree.iter("Piece")).attrib
    return found, int(piece["NumberOfPoints"]), int(piece["NumberOfCells"])


def test_vtu_holds_place_speed_and_body_of_filled_slots(tmp_path):
    write(tmp_path / "two.first.vtu", STATE)
    found, points, cells = vtu(tmp_path / "two.first.vtu")
    assert points == cells == 8
    np.testing.assert_array_equal(found["points"][:, :2], np.concatenate(X))
    np.testing.assert_array_equal(found["velocity"][:5], [(0.5, -1.0, 0.0)] * 5)
    np.testing.assert_array_equal(found["body"][:, 0], [0] * 5 + [1] * 3)
    assert not found["points"][:, 2].any() and not found["velocity"][5:].any()
    np.testing.assert_array_equal(found["types"][:, 0], 1)  # VTK_VERTEX
    np.testing.assert_array_equal(found["connectivity"][:, 0], np.arange(8))


def test_other_endings_get_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="two.obj; the name must end in .npz, .ply or .vtu"):
        write(tmp_path / "two.obj", STATE)


@pytest.mark.parametrize("ending, library, name", [("vtu", "pyevtk", "files"),
                                                   ("ply", "trimesh", "mesh")])  # fmt: skip
def test_a_missing_extra_gets_a_sentence(tmp_path, monkeypatch, ending, library, name):
    for module in [m for m in sys.modules if m.partition(".")[0] == library] + [library]:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(ModuleNotFoundError) as caught:
        write(tmp_path / f"two.{ending}", STATE)
    assert str(caught.value) == (
        f'write: two.{ending} needs {library}; pip install "jaxgpu[{name}]"'
    )
    assert not list(tmp_path.iterdir())
