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


def test_what_does_not_divide_is_named():
    with pytest.raises(ValueError, match=r"shape \(6, 2\) over 8 devices; its leading axis"):
        mesh.split(np.zeros((6, 2)), mesh.devices(8))
    with pytest.raises(ValueError, match="there are 8"):
        mesh.devices(9)
    assert mesh.devices().size == len(jax.devices())
