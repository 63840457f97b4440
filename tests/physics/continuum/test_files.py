"""What is written is read back by other programs' readers."""

import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

from jaxgpu.physics.continuum import Body, Grid, Liquid, NeoHookean, Scene, init
from jaxgpu.physics.continuum.files import write

RNG = np.random.default_rng(0)
X = [RNG.uniform(0.2, 0.8, (n, 2)).astype(np.float32) for n in (5, 3)]
BODIES = (Body(jnp.asarray(X[0]), Liquid(), 1e-4, v=(0.5, -1.0), capacity=9),
          Body(jnp.asarray(X[1]), NeoHookean(), 1e-4))  # fmt: skip
STATE = init(Scene(BODIES, Grid(0.1, (10, 10))))


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


def test_other_endings_get_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="two.obj; the name must end in .ply or .npz"):
        write(tmp_path / "two.obj", STATE)
