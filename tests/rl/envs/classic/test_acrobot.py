"""Acrobot against gymnasium, step by step."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_reference import check_steps

from jaxgpu import rl
from jaxgpu.rl.envs.classic.acrobot import State


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-7), ("float32", 2e-6)])
def test_1000_random_steps_are_those_of_gymnasium(x64, dtype, tolerance):
    check_steps("acrobot", State, dtype, tolerance)


def test_the_tip_above_the_bar_terminates_at_no_cost():
    env = rl.make("acrobot")
    up = State(jnp.array([3.0, 0.0, 0.0, 0.0]), jnp.int32(0))
    step = env.step(up, jnp.int32(1), jax.random.key(0))
    assert step.terminated and step.reward == 0 and step.info["success"]


def test_conforms():
    env = rl.make("acrobot")
    state, _ = env.reset(jax.random.key(0))
    conformance.check(jax.jit(env.step), state, jnp.int32(2), jax.random.key(1), batched=(0,))


def test_its_links_are_drawn_as_long_as_they_are():
    env = rl.make("acrobot", length=2.0)
    drawn = env.scene(State(np.float32([0.4, -0.9, 0, 0]), np.int32(0)))
    lengths = np.linalg.norm(drawn.end - drawn.start, axis=1)
    np.testing.assert_allclose(lengths[1:], 2, rtol=1e-6)  # the first is the bar
