"""The reaching task: what an oracle gets, units, and its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from rl_controller import play

from jaxgpu import rl
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.envs.surgical.reach import State

SLOW = ["surgical/psm-reach", "surgical/star-reach"]
ALL = ["surgical/ecm-reach", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_damped_least_squares_reaches_every_goal(name):
    """A resolved-rate controller that shares nothing with learning solves all 64."""
    env = rl.make(name)
    distance = play(env, env.arm, lambda state, q: forward_kinematics(env.arm, q)[0] - state.goal)[
        1
    ]["distance"]
    assert distance[:, 0].mean() > 0.05  # 5 cm away at first
    assert (distance[:, -1] < 0.005).mean() >= 0.95  # the rest sits at a limit of a joint


def test_the_reward_is_in_metres_and_success_in_millimetres():
    env = rl.make("surgical/psm-reach")
    state, _ = env.reset(jax.random.key(0))
    tip = forward_kinematics(env.arm, state.q)[0]
    for offset, success in ((0.004, True), (0.006, False)):
        near = State(state.q, state.t, tip + jnp.array([offset, 0.0, 0.0]))
        out = env.step(near, jnp.zeros(6), jax.random.key(0))
        assert out.info["success"] == success
        np.testing.assert_allclose(out.reward, success - 20 * offset, rtol=1e-3)


@pytest.mark.slow
def test_rewards_have_the_derivative_of_finite_differences(x64):
    env = rl.make("surgical/psm-reach")
    q = jnp.array([0.3, -0.2, 0.1, 0.5, 0.2, -0.3])
    state = State(q, jnp.int32(0), jnp.array([0.02, 0.03, -0.1]))
    reward = lambda action: env.step(state, action, jax.random.key(0)).reward
    check_grads(jax.jit(reward), (jnp.full(6, 0.2),), order=1, rtol=1e-6, atol=1e-6)
