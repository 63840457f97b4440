"""The tracking task: the goal can be followed, and it moves at its own pace."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_controller import play, slope_is_that_of_differences
from rl_matrices import tip_pose

from jaxgpu import rl
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics
from jaxgpu.rl.envs.surgical.track import State

ENV = rl.make("surgical/psm-track")
FEW = {"xla_backend_optimization_level": 0}  # programs that run once


@pytest.mark.slow
def test_aimed_at_where_the_goal_is_it_lags_by_a_step_of_it():
    """The error is a step of the goal in metres, plus the arc that a straight joint step cuts off.

    A step dq misses by at most L (sum |dq|)^2 / 2, with L the length from the first joint to the
    tip: no second derivative of a chain of joints is greater. A hundredth of the step is left to
    the damping, and one in twenty to joints at their limits.
    """
    env = ENV
    states, info = play(
        env, env.arm, lambda state, q: forward_kinematics(env.arm, q)[0] - env.goal(state)
    )
    assert info["distance"][:, 0].mean() > 0.05
    states, late = jax.tree.map(lambda x: x[:, 99:], states), info["distance"][:, 100:]
    goal = np.asarray(jax.jit(jax.vmap(jax.vmap(env.goal)))(states))
    step = np.linalg.norm(np.diff(goal, axis=1), axis=-1)
    length = sum(abs(a) + abs(d) for _, a, _, d in env.arm.dh) + np.linalg.norm(env.arm.tip)
    turned = np.abs(np.diff(states.q, axis=1))[..., ~np.array(env.arm.prismatic)].sum(-1)
    bound = 1.01 * step + length * turned**2 / 2
    assert (late <= bound).mean() >= 0.95
    assert np.median(late) == pytest.approx(np.median(step), rel=0.1)


@pytest.mark.slow
def test_aimed_at_where_the_goal_will_be_it_stays_on_it():
    """Nearly all steps succeed within 5 mm, so that the task can be done."""
    env = ENV
    soon = lambda state: env.goal(replace(state, t=state.t + 1))
    _, info = play(env, env.arm, lambda state, q: forward_kinematics(env.arm, q)[0] - soon(state))
    assert info["success"][:, 100:].mean() >= 0.95


def test_rewards_have_the_derivative_of_finite_differences(x64):
    q = jnp.array([0.3, -0.2, 0.1, 0.5, 0.2, -0.3])
    state = State(q, jnp.int32(3), jnp.arange(6.0), jnp.full(6, 0.05))
    reward = lambda action: ENV.step(state, action, jax.random.key(0)).reward
    slope_is_that_of_differences(reward, np.full(6, 0.2), 1e-6)


def test_a_step_is_that_of_its_equations(x64):
    """Write out the arm's joints, the goal's, the observation and the reward in NumPy."""
    env, rng = ENV, np.random.default_rng(0)
    low, high = np.array(env.arm.working_lower), np.array(env.arm.working_upper)
    q = low + (high - low) * rng.uniform(0.2, 0.8, 6)
    phase, frequency, action = *rng.uniform(0, 6, (2, 6)), rng.uniform(-1, 1, 6)
    out = jax.jit(env.step)(State(q, np.int32(3), phase, frequency), action, jax.random.key(0))
    swing = lambda t: (low + high) / 2 + (high - low) / 4 * np.sin(phase + frequency * t)
    goal, before = (tip_pose(env.arm, swing(t))[0] for t in (4, 3))
    q = q + 0.05 * (high - low) * action
    tip = tip_pose(env.arm, q)[0]
    joints = (q - (low + high) / 2) / ((high - low) / 2)
    seen = [*joints, *(goal - tip) / 0.05, *(goal - before) / 0.005, *tip / 0.2]
    np.testing.assert_allclose(out.observation, seen, rtol=1e-9)
    assert env.observation_space.shape == out.observation.shape == (15,)
    away = np.linalg.norm(goal - tip)
    np.testing.assert_allclose([out.info["distance"], out.reward], [away, -20 * away], rtol=1e-6)
    assert not (out.truncated or out.terminated or out.info["success"])


def test_a_goal_swings_over_half_of_its_range_at_random_phases_and_no_faster_than_its_pace():
    """Per step, a joint moves by at most a quarter of its range times its frequency.

    That is at most half of the arm's greatest step.
    """

    def start(key):
        state, _ = ENV.reset(key)
        return state, ENV.goal(replace(state, t=jnp.int32(7)))

    keys = jax.random.split(jax.random.key(0), 500)
    state, goal = jax.tree.map(np.asarray, jax.jit(jax.vmap(start), compiler_options=FEW)(keys))
    fastest = np.abs(state.frequency).max() / 4
    assert 0.98 * 0.5 * 0.05 < fastest <= 0.5 * 0.05 * 1.0001
    assert abs(state.frequency.mean()) < 0.005 and (state.t == 0).all()
    assert 0 <= state.phase.min() < 0.01 and 6.27 < state.phase.max() <= 2 * np.pi
    low, high = np.array(ENV.arm.working_lower), np.array(ENV.arm.working_upper)
    t, phase, frequency = np.arange(200)[:, None], state.phase[:, None], state.frequency[:, None]
    q = (low + high) / 2 + (high - low) / 4 * np.sin(phase + t * frequency)
    step = np.abs(np.diff(q, axis=1)) / (high - low)
    assert step.max() <= 0.5 * 0.05 * 1.0001 and step.max((1, 2)).min() > 0.005
    for i in range(5):
        np.testing.assert_allclose(goal[i], tip_pose(ENV.arm, q[i, 7])[0], atol=1e-6)
