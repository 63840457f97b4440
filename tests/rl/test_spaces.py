"""Spaces: their elements, and invalid values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.rl import Box, Discrete


def test_samples_lie_in_their_space():
    keys = jax.random.split(jax.random.key(0), 200)
    box = jax.vmap(Box(-2.0, 3.0, (4,)).sample)(keys)
    assert box.shape == (200, 4) and box.min() > -2 and box.max() < 3 and box.max() > 2
    assert set(np.asarray(jax.vmap(Discrete(3).sample)(keys)).tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    "space, action, message",
    [
        (Box(-1.0, 1.0, (2,)), jnp.zeros(3), r"a has shape \(3,\); it must have shape \(2,\)"),
        (Box(-1.0, 1.0, (2,)), jnp.array([0.0, jnp.nan]), "a holds nan; give numbers"),
        (Box(-1.0, 1.0, (2,)), jnp.array([0.0, 1.5]), "a holds 1.5; it must lie within -1.0, 1.0"),
        (Discrete(3), 3, "a is 3; it must be one of 0 ... 2"),
        (Discrete(3), -1, "a is -1"),
        (Discrete(3), jnp.zeros(2, int), "it must be one whole number"),
    ],
)
def test_a_wrong_action_is_named(space, action, message):
    with pytest.raises(ValueError, match=message):
        space.check("a", action)


def test_a_real_number_is_no_choice():
    with pytest.raises(TypeError, match="it must be an integer"):
        Discrete(3).check("a", 1.0)


def test_under_jit_only_shapes_are_checked():
    def f(x):
        Box(-1.0, 1.0, (2,)).check("a", x)
        return x

    jax.jit(f)(jnp.full(2, jnp.nan))
    with pytest.raises(ValueError, match="shape"):
        jax.jit(f)(jnp.zeros(3))
