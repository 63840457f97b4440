"""The tracking task: it can be followed, and the goal keeps its pace."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from rl_controller import play

from jaxgpu import rl
from jaxgpu.rl.arms import place, working
from jaxgpu.rl.envs.track import State

pytestmark = pytest.mark.slow
ALL = ["surgical/psm-track", "surgical/star-track"]


@pytest.mark.parametrize("name", ALL)
def test_damped_least_squares_follows_the_goal(name):
    """Aimed at where the goal is now, it lags by a step of it and no more."""
    env = rl.make(name)
    distance = play(env, env.arm, lambda state, q: place(env.arm, q)[0] - env.goal(state))
    distance = distance["distance"]
    assert distance[:, 0].mean() > 0.05
    late = distance[:, 100:]
    assert (late < 0.01).mean() >= 0.9 and np.median(late) < 0.005


def test_no_joint_of_the_goal_is_faster_than_its_pace():
    """Written out from the phases: at most half of the arm's greatest step, and in its range."""
    env = rl.make("surgical/psm-track")
    low, high = map(np.asarray, working(env.arm, jnp.float32))
    for seed in range(5):
        state, _ = env.start(jax.random.key(seed))
        t, phase, turn = np.arange(200)[:, None], *map(np.asarray, (state.phase, state.turn))
        q = (low + high) / 2 + (high - low) / 4 * np.sin(phase + t * turn)
        step = np.abs(np.diff(q, axis=0)) / (high - low)
        assert step.max() <= 0.5 * 0.05 * 1.0001 and step.max() > 0.01
        there = place(env.arm, jnp.asarray(q[7]))[0]
        later = State(state.q, state.phase, state.turn, jnp.int32(7))
        np.testing.assert_allclose(env.goal(later), there, atol=1e-6)


def test_rewards_have_the_derivative_of_finite_differences(x64):
    env = rl.make("surgical/psm-track")
    q = jnp.array([0.3, -0.2, 0.1, 0.5, 0.2, -0.3])
    state = State(q, jnp.arange(6.0), jnp.full(6, 0.05), jnp.int32(3))
    reward = lambda action: env.advance(state, action, jax.random.key(0)).reward
    check_grads(jax.jit(reward), (jnp.full(6, 0.2),), order=1, rtol=1e-6, atol=1e-6)
