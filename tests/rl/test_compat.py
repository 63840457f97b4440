"""Surgical Gym's tasks: the reward by hand, the motion of targets, the spread of goals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl.arms import place

TASKS = {  # change of q in a step at action 1, rad and m; costs; spread of the goal, m
    "psm": ([0.01, 0.01, 0.00127, 0.01, 0.01, 0.01], 1e-4, 0.01, 0.05),
    "ecm": ([0.02, 0.02, 0.00254, 0.02], 0.0, 0.0, 0.1),
    "star": ([0.02] * 7, 1e-3, 0.0, 0.15),
}


@pytest.mark.parametrize(
    "name", ["ecm", *(pytest.param(name, marks=pytest.mark.slow) for name in ("psm", "star"))]
)
def test_the_reward_is_that_of_the_published_formula(name):
    change, slow, low, spread = TASKS[name]
    env = rl.make(f"surgical/{name}-reach-compat")
    state, first = jax.jit(env.start)(jax.random.key(3))
    action = jnp.linspace(-1.0, 1.0, env.arm.joints)
    out = jax.jit(env.advance)(state, action, jax.random.key(0))
    moved = np.asarray(action) * change
    np.testing.assert_allclose(out.state.q - state.q, moved, atol=1e-7)
    q = np.asarray(state.q) + moved
    off = np.abs(np.asarray(place(env.arm, jnp.asarray(q, jnp.float32))[0]) - state.goal)
    cost = off.sum() + slow * np.abs(moved / 0.01).sum() + low * np.abs(q).sum()
    np.testing.assert_allclose(out.reward, -cost, rtol=1e-4)
    assert first.shape == out.observation.shape == env.observation_space.shape
    np.testing.assert_allclose(
        out.observation[-3:], -(state.goal - place(env.arm, q)[0]), atol=1e-6
    )
    goals = jax.jit(jax.vmap(env.start))(jax.random.split(jax.random.key(0), 4000))[0].goal
    tip = place(env.arm, state.q)[0]
    np.testing.assert_allclose(np.std(goals - tip[None], 0), spread, rtol=0.05)
    np.testing.assert_allclose(np.mean(goals, 0), tip, atol=5 * spread / 4000**0.5)


@pytest.mark.slow
def test_targets_stop_at_one_and_joints_at_their_limits():
    """A pitch of 1 rad is asked for; the arm has 0.925."""
    env = rl.make("surgical/psm-reach-compat", step=0.5)
    state, _ = env.start(jax.random.key(0))
    for _ in range(3):
        state = jax.jit(env.advance)(state, jnp.ones(6), jax.random.key(0)).state
    np.testing.assert_array_equal(state.target, 1.0)
    np.testing.assert_allclose(state.q, [1, 0.925, 0.24, 1, 1, 1], rtol=1e-6)
