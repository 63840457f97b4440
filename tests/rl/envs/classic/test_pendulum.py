"""Pendulum against gymnasium, step by step, and its gradient."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from rl_reference import assert_like_gymnasium, load_steps, replay

from jaxgpu import rl
from jaxgpu.rl.envs.classic.pendulum import State


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-7), ("float32", 2e-6)])
def test_1000_random_steps_are_those_of_gymnasium(x64, dtype, tolerance):
    """The action here is a fraction of the greatest torque, which is 2 N m."""
    before = jnp.asarray(load_steps("pendulum")["before"], dtype)
    states = State(before[:, 0], before[:, 1], jnp.zeros(len(before), jnp.int32))
    actions = jnp.asarray(load_steps("pendulum")["action"] / 2, dtype)
    step = replay(rl.make("pendulum"), states, actions)
    after = np.stack([step.state.angle, step.state.angular_velocity], 1)
    assert_like_gymnasium("pendulum", step, after, tolerance)


def test_rewards_have_the_derivative_of_finite_differences(x64):
    env = rl.make("pendulum")

    def total(actions):
        state = State(jnp.array(2.0), jnp.array(0.3), jnp.int32(0))
        return sum(
            (step := env.step(state, a, jax.random.key(0)), state := step.state)[0].reward
            for a in actions
        )

    actions = jnp.array([[0.3], [-0.2], [0.9]])
    check_grads(jax.jit(total), (actions,), order=1, rtol=1e-6, atol=1e-6)


def test_conforms():
    env = rl.make("pendulum")
    state, _ = env.reset(jax.random.key(0))
    step = lambda action: env.step(state, action, jax.random.key(1))
    conformance.check(step, jnp.array([0.5]), differentiable=(0,), batched=(0,))


def test_episodes_begin_anywhere_at_any_speed_within_1_rad_s():
    env = rl.make("pendulum")
    state = jax.vmap(lambda key: env.reset(key)[0])(jax.random.split(jax.random.key(0), 200))
    for found, most in ((state.angle, np.pi), (state.angular_velocity, 1.0)):
        assert -most <= found.min() < -0.9 * most and 0.9 * most < found.max() <= most


def test_episodes_begin_at_any_angle_and_slowly():
    keys = jax.random.split(jax.random.key(0), 400)
    state, _ = jax.vmap(rl.make("pendulum").reset)(keys)
    angle, speed = np.asarray(state.angle) / np.pi, np.asarray(state.angular_velocity)
    for x in (angle, speed):
        assert -1 <= x.min() < -0.95 and 0.95 < x.max() <= 1 and abs(x.mean()) < 0.1
