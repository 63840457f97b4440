"""A change that is made once or not at all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody.clusters.once import once


@jax.jit
def changed(some, value):
    return once(some, lambda old: {"x": old["x"] ** 2, "k": old["k"] + 1}, value)


@pytest.mark.parametrize("some", [True, False])
def test_changes_once_or_not_at_all(some):
    x, k = jnp.array([2.0, -3.0]), jnp.int32(4)
    got, way = jax.jvp(lambda x: changed(some, {"x": x, "k": k})["x"], (x,), (jnp.ones(2),))
    np.testing.assert_array_equal(got, [4.0, 9.0] if some else x)
    np.testing.assert_array_equal(way, [4.0, -6.0] if some else [1.0, 1.0])
    assert changed(some, {"x": x, "k": k})["k"] == 4 + some


def test_each_of_a_batch_for_itself():
    x = jnp.array([2.0, -3.0])
    got = jax.vmap(lambda some, x: once(some, jnp.square, x))(jnp.array([True, False]), x)
    np.testing.assert_array_equal(got, [4.0, -3.0])
