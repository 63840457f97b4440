"""CartPole against gymnasium, step by step."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from field_shapes import check_shapes
from rl_reference import check_steps

from jaxgpu import rl
from jaxgpu.rl.envs.classic.cartpole import State


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-7), ("float32", 1e-6)])
def test_1000_random_steps_are_those_of_gymnasium(x64, dtype, tolerance):
    """gymnasium computes in float64 and returns float32 observations, hence 1e-7."""
    check_steps("cartpole", State, dtype, tolerance)


def test_the_clock_truncates_and_the_fall_terminates():
    env = rl.make("cartpole", max_steps=3)
    state, _ = env.reset(jax.random.key(0))
    ends = []
    for i in range(3):
        step = env.step(state, i % 2, jax.random.key(1))
        state = step.state
        ends.append((bool(step.terminated), bool(step.truncated)))
    assert ends == [(False, False), (False, False), (False, True)]
    fallen = State(jnp.array([0.0, 0.0, 0.3, 0.0]), jnp.int32(0))
    assert env.step(fallen, 0, jax.random.key(1)).terminated


def test_the_mask_hides_the_velocities():
    plain, masked = rl.make("cartpole"), rl.make("cartpole-masked")
    assert masked.observation_space.shape == (2,)
    _, seen = plain.reset(jax.random.key(3))
    _, left = masked.reset(jax.random.key(3))
    np.testing.assert_array_equal(left, seen[::2])


def test_conforms():
    env = rl.make("cartpole")
    state, _ = env.reset(jax.random.key(0))
    assert check_shapes(state) == {}
    conformance.check(env.step, state, jnp.int32(1), jax.random.key(1), batched=(0,))
