"""The reaching task: success of an exact controller, units, and the gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_controller import play, slope_is_that_of_differences
from rl_matrices import tip_pose

from jaxgpu import rl
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.envs.surgical.reach import State

Q = np.array([0.3, -0.2, 0.1, 0.5, 0.2, -0.3])  # joints of the PSM


@pytest.mark.slow
def test_damped_least_squares_reaches_every_goal():
    """A resolved-rate controller, which shares nothing with learning, solves all 64."""
    env = rl.make("surgical/ecm-reach")
    distance = play(env, env.arm, lambda state, q: forward_kinematics(env.arm, q)[0] - state.goal)[
        1
    ]["distance"]
    assert distance[:, 0].mean() > 0.05  # 5 cm away at first
    assert (distance[:, -1] < 0.005).mean() >= 0.95  # the rest sits at a limit of a joint


def test_the_reward_is_in_metres_and_success_in_millimetres():
    env = rl.make("surgical/psm-reach")
    step, tip = jax.jit(env.step), tip_pose(env.arm, Q)[0]
    for offset, success in ((0.004, True), (0.006, False)):
        goal = (tip + [offset, 0, 0]).astype(np.float32)
        near = State(Q.astype(np.float32), np.int32(0), goal)
        out = step(near, np.zeros(6, np.float32), jax.random.key(0))
        assert out.info["success"] == success
        np.testing.assert_allclose(out.reward, success - 20 * offset, rtol=1e-3)


def test_rewards_have_the_derivative_of_finite_differences(x64):
    env = rl.make("surgical/psm-reach")
    state = State(jnp.asarray(Q), jnp.int32(0), jnp.array([0.02, 0.03, -0.1]))
    reward = lambda action: env.step(state, action, jax.random.key(0)).reward
    slope_is_that_of_differences(reward, np.full(6, 0.2), 1e-6)
