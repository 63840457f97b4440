"""Reaching with masses: servos lag, every goal is still reached, and gradients include servos."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_controller import play, slope_is_that_of_differences
from rl_matrices import tip_pose

from jaxgpu import rl
from jaxgpu.rl.envs.surgical import dynamic_reach
from jaxgpu.rl.envs.surgical.dynamic_reach import State
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics

NAME = "surgical/ecm-reach-dynamic"  # the other arms have more joints and the same code
Q = np.array([0.3, -0.2, 0.1, 0.5])
KEY = jax.random.key(0)


@pytest.mark.slow
def test_damped_least_squares_on_the_targets_reaches_every_goal():
    """The targets move straight to the goal; the arm lags behind and arrives in the end."""
    env = rl.make(NAME)
    states, info = play(
        env, env.arm, lambda s, target: forward_kinematics(env.arm, target)[0] - s.goal, at="target"
    )
    assert (info["distance"][:, -1] < 0.005).mean() >= 0.95
    lag = np.abs(states.target - states.q)[:, 5].max(-1)
    assert np.median(lag) > 0.005


@pytest.mark.slow
def test_the_goal_is_judged_where_the_tip_is_and_rewards_have_derivatives(x64):
    env = rl.make(NAME)
    target = Q + np.array([0.3, 0.0, 0.0, 0.0])
    tip = tip_pose(env.arm, Q)[0]
    step = jax.jit(env.step, compiler_options={"xla_backend_optimization_level": 0})
    out = step(State(Q, np.int32(0), 0 * Q, target, tip), np.zeros(4), KEY)
    moved = np.linalg.norm(tip_pose(env.arm, np.asarray(out.state.q))[0] - tip)
    np.testing.assert_allclose(out.info["distance"], moved, rtol=1e-4)
    assert 1e-4 < moved < 0.02

    state = State(Q, np.int32(0), 0.1 * Q, Q, np.array([0.02, 0.03, -0.1]))

    def total(actions):
        move = lambda s, a: ((out := env.step(s, a, KEY)).state, out.reward)
        return jnp.sum(jax.lax.scan(move, jax.tree.map(jnp.asarray, state), actions)[1])

    slope_is_that_of_differences(total, np.full((3, 4), 0.2), 1e-5)


def tip_after(env, dynamics, steps=3):
    """Return the tip's position after steps of one action, for given masses and gains."""
    env = replace(env, dynamics=dynamics)
    state, _ = env.reset(jax.random.key(0))
    step = lambda state, _: (env.step(state, jnp.full(env.arm.joints, 0.7), KEY).state, None)
    end, _ = jax.lax.scan(step, state, length=steps)
    return forward_kinematics(env.arm, end.q)[0]


@pytest.mark.slow
def test_masses_and_gains_are_leaves_that_vmap_and_grad_reach():
    """A heavier arm lags; gradients are finite, and that of damping agrees with differences."""
    env = rl.make(NAME)
    scales = np.float32([[0.5, 1.0], [1.0, 1.0], [3.0, 1.0], [1.0, 1.01], [1.0, 0.99]])

    def tip_and_slope(scale):
        base, (heavy, damped) = env.dynamics, scale
        mass, inertia = heavy * base.mass, heavy * base.inertia
        changed = replace(base, mass=mass, inertia=inertia, damping=damped * base.damping)
        tip_sum = lambda dynamics: ((tip := tip_after(env, dynamics)).sum(), tip)
        return jax.value_and_grad(tip_sum, has_aux=True)(changed)

    few = {"xla_backend_optimization_level": 0}
    (total, tips), slopes = jax.jit(jax.vmap(tip_and_slope), compiler_options=few)(scales)
    assert np.linalg.norm(tips[0] - tips[2]) > 1e-5
    for name, slope in vars(slopes).items():
        assert slope.shape[1:] == np.shape(getattr(env.dynamics, name))
        assert np.isfinite(slope).all()
    assert np.any(slopes.mass[1] != 0) and np.all(slopes.stiffness[1] != 0)
    assert np.all(slopes.damping[1] != 0)
    # All dampings change by a percent, which is large compared to the rounding of 1e-8 m.
    central = (total[3] - total[4]) / 0.02
    along = np.sum(np.asarray(slopes.damping[1]) * env.dynamics.damping)
    np.testing.assert_allclose(along, central, rtol=0.02)


@pytest.mark.parametrize("arm", ["psm", "star"])
def test_what_is_seen_is_in_the_units_of_the_task(x64, arm):
    """Joints are in units of their ranges, velocities in ranges per s, ways in 5 and 20 cm."""
    env, rng = rl.make(f"surgical/{arm}-reach-dynamic"), np.random.default_rng(0)
    low, high = np.array(env.arm.working_lower), np.array(env.arm.working_upper)
    q, v, target = rng.normal(size=(3, env.arm.joints))
    goal, tip = rng.normal(size=(2, 3))
    seen = jax.jit(env._observe)(State(q, np.int32(0), v, target, goal), tip)
    joints = [(x - (low + high) / 2) / ((high - low) / 2) for x in (q, target)]
    want = np.concatenate([*joints, v / (high - low), (goal - tip) / 0.05, tip / 0.2])
    np.testing.assert_allclose(seen, want, rtol=1e-9)
    assert env.observation_space.shape == seen.shape == (3 * env.arm.joints + 6,)


def test_it_begins_at_rest_with_the_tip_of_another_position_for_a_goal():
    env = rl.make("surgical/psm-reach-dynamic")
    state, seen = jax.jit(env.reset)(KEY)
    assert not state.v.any() and state.t == 0 and env.dt == 0.02
    np.testing.assert_array_equal(state.q, state.target)
    tip = tip_pose(env.arm, np.asarray(state.q, float))[0]
    np.testing.assert_allclose(seen[-6:-3], (state.goal - tip) / 0.05, atol=1e-5)
    depth = np.linalg.norm(state.goal)  # the wrist is 34.4 to 184.4 mm deep, the tip 19.3 mm off
    assert 0.015 < depth < 0.204 and np.linalg.norm(state.goal - tip) > 0.01


def test_time_is_counted_in_steps_until_the_last(monkeypatch):
    """The arm is a fake that does not move, so that no dynamics are compiled."""
    still = SimpleNamespace(
        init=lambda q, v: SimpleNamespace(qpos=q, qvel=v), step=lambda body, target: body
    )
    monkeypatch.setattr(dynamic_reach.dynamics, "mechanism", lambda *args: still)
    env = rl.make("surgical/psm-reach-dynamic")
    q = np.float32([0.3, -0.2, 0.12, 0.5, 0.6, -0.3])
    goal = np.zeros(3, np.float32)
    step = jax.jit(lambda t: env.step(State(q, t, 0 * q, q, goal), 0 * q, KEY))
    for t, over in ((0, False), (env.max_steps - 2, False), (env.max_steps - 1, True)):
        out = step(np.int32(t))
        assert out.state.t == t + 1 and out.truncated == over
