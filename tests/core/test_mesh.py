"""A batch over eight virtual devices gives what one device gives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import mesh
from jaxgpu.run import run


def step(x):
    return jnp.sin(x) + 0.5 * x


def test_a_split_batch_gives_the_same_bits_as_one_device():
    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(16, 4)
    one = run(step, x, 20)
    spread = mesh.split(x, mesh.devices(8))
    assert len(spread.sharding.device_set) == 8
    eight = run(step, spread, 20)
    assert len(eight.state.sharding.device_set) == 8
    np.testing.assert_array_equal(one.state, eight.state)


def test_a_split_run_resumes_split(tmp_path):
    x = mesh.split(np.linspace(-3, 3, 16, dtype=np.float32), mesh.devices(8))
    whole = run(step, x, 20)
    run(step, x, 12, out=tmp_path)
    rest = run(step, x, 20, out=tmp_path, resume=True)
    assert len(rest.state.sharding.device_set) == 8
    np.testing.assert_array_equal(whole.state, rest.state)


def test_replicas_are_on_every_device():
    tree = mesh.replicate({"m": jnp.ones(3)}, mesh.devices(8))
    assert len(tree["m"].sharding.device_set) == 8


def test_any_axis_can_be_spread_and_explicit_meshes_work():
    explicit = jax.make_mesh((8,), ("lanes",))
    x = np.linspace(0, 3, 48, dtype=np.float32).reshape(3, 16)
    spread = mesh.split(x, explicit, axis=-1)
    assert spread.sharding.shard_shape(x.shape) == (3, 2)
    np.testing.assert_array_equal(run(step, spread, 3).state, run(step, x, 3).state)


@pytest.mark.parametrize(
    "tree, axis, said",
    [
        (np.zeros((6, 2)), 0, r"shape \(6, 2\) over 8 devices; axis 0 must be"),
        (np.zeros(()), 0, r"shape \(\) has no axis 0; put it on every device"),
        (np.zeros(8), 1, r"shape \(8,\) has no axis 1"),
        ({"x": np.zeros((8, 3)), "m": np.ones(16)}, 0, r"shapes \(16,\) and \(8, 3\); axis 0"),
    ],
)
def test_what_cannot_be_spread_is_named(tree, axis, said):
    with pytest.raises(ValueError, match=said):
        mesh.split(tree, mesh.devices(8), axis)


def test_vectors_are_not_torn_apart():
    with pytest.raises(ValueError, match=r"first axis of .*\(6, 1000\) looks like the comp"):
        mesh.split(np.zeros((6, 1000)), mesh.devices(2))
    seeds = mesh.split(np.zeros((2, 1000)), mesh.devices(2), axis=0)
    assert seeds.sharding.shard_shape(seeds.shape) == (1, 1000)


def test_meshes_of_the_wrong_kind_are_named():
    with pytest.raises(ValueError, match="there are 8"):
        mesh.devices(9)
    with pytest.raises(ValueError, match="has the axes a, b; it must have one"):
        mesh.replicate(np.ones(3), jax.make_mesh((4, 2), ("a", "b")))
    assert mesh.devices().size == len(jax.devices())
