"""Reaching with mass: servos lag, every goal can still be reached, and gradients see the servos."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from rl_controller import play
from rl_matrices import by_matrices

from jaxgpu import rl
from jaxgpu.rl.envs.surgical import dynamic_reach
from jaxgpu.rl.envs.surgical.dynamic_reach import State
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics

NAMES = ["surgical/psm-reach-dynamic", "surgical/star-reach-dynamic"]
KEY = jax.random.key(0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_damped_least_squares_on_the_targets_reaches_every_goal(name):
    """The targets go straight to the goal; the arm is behind them, and there in the end."""
    env = rl.make(name)
    states, info = play(
        env, env.arm, lambda s, target: forward_kinematics(env.arm, target)[0] - s.goal, at="target"
    )
    assert (info["distance"][:, -1] < 0.005).mean() >= 0.95
    lag = np.abs(states.target - states.q)[:, 5].max(-1)
    assert np.median(lag) > 0.005


@pytest.mark.slow
def test_the_goal_is_judged_where_the_tip_is_not_where_the_servos_aim():
    env = rl.make("surgical/psm-reach-dynamic")
    state, _ = jax.jit(env.reset)(jax.random.key(0))
    tip, _ = forward_kinematics(env.arm, state.q)
    aimed = replace(state, goal=tip, target=state.target + jnp.array([0.3, 0, 0, 0, 0, 0]))
    out = jax.jit(env.step)(aimed, jnp.zeros(6), jax.random.key(0))
    moved = np.linalg.norm(forward_kinematics(env.arm, out.state.q)[0] - tip)
    np.testing.assert_allclose(out.info["distance"], moved, rtol=1e-4)
    assert 1e-4 < moved < 0.02


@pytest.mark.slow
def test_rewards_have_the_derivative_of_finite_differences(x64):
    env = rl.make("surgical/ecm-reach-dynamic")
    q = jnp.array([0.3, -0.2, 0.1, 0.5])
    state = State(q, jnp.int32(0), 0.1 * q, q, jnp.array([0.02, 0.03, -0.1]))

    def total(actions):
        move = lambda s, a: ((out := env.step(s, a, jax.random.key(0))).state, out.reward)
        return jnp.sum(jax.lax.scan(move, state, actions)[1])

    check_grads(jax.jit(total), (jnp.full((3, 4), 0.2),), order=1, rtol=1e-5, atol=1e-5)


def moved(env, dynamics, steps=3):
    """Where the tip is after steps of one action, for the given masses and gains."""
    env = replace(env, dynamics=dynamics)
    state, _ = env.reset(jax.random.key(0))
    step = lambda state, _: (env.step(state, jnp.full(env.arm.joints, 0.7), KEY).state, None)
    end, _ = jax.lax.scan(step, state, length=steps)
    return forward_kinematics(env.arm, end.q)[0]


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["psm", "ecm", "star"])
def test_masses_and_gains_are_leaves_that_vmap_and_grad_reach(arm):
    """A batch of masses is a loop over them; a heavier arm lags; a slope is that of differences."""
    env = rl.make(f"surgical/{arm}-reach-dynamic")
    base = env.dynamics
    scaled = lambda c: replace(base, mass=c * base.mass, inertia=c * base.inertia)
    one = jax.jit(lambda c: moved(env, scaled(c)))
    factors = jnp.array([0.5, 1.0, 3.0])
    tips = jax.jit(jax.vmap(lambda c: moved(env, scaled(c))))(factors)
    np.testing.assert_allclose(tips, [one(c) for c in factors], atol=1e-6)
    assert np.linalg.norm(tips[0] - tips[2]) > 1e-5
    slopes = jax.jit(jax.grad(lambda dynamics: jnp.sum(moved(env, dynamics))))(base)
    for name, slope in vars(slopes).items():
        assert slope.shape == getattr(base, name).shape and np.isfinite(slope).all()
    assert np.any(slopes.mass != 0) and np.all(slopes.stiffness != 0)
    assert np.all(slopes.damping != 0)
    # along the damping of all servos, by half a percent, which rounding of 1e-8 m leaves room for
    turned = lambda c: replace(base, damping=c * base.damping)
    wide = jax.jit(lambda c: jnp.sum(moved(env, turned(c))))
    central = (wide(1.01) - wide(0.99)) / 0.02
    np.testing.assert_allclose(np.sum(slopes.damping * base.damping), central, rtol=0.02)


@pytest.mark.parametrize("arm", ["psm", "ecm", "star"])
def test_what_is_seen_is_in_the_units_of_the_task(x64, arm):
    """Joints and targets in their range, speeds in ranges a s, ways in 5 and 20 cm."""
    env, rng = rl.make(f"surgical/{arm}-reach-dynamic"), np.random.default_rng(0)
    low, high = np.array(env.arm.working_lower), np.array(env.arm.working_upper)
    q, v, target = rng.normal(size=(3, env.arm.joints))
    goal, tip = rng.normal(size=(2, 3))
    state = State(*map(jnp.asarray, (q, np.int32(0), v, target, goal)))
    seen = jax.jit(env._observe)(state, jnp.asarray(tip))
    joints = [(x - (low + high) / 2) / ((high - low) / 2) for x in (q, target)]
    want = np.concatenate([*joints, v / (high - low), (goal - tip) / 0.05, tip / 0.2])
    np.testing.assert_allclose(seen, want, rtol=1e-9)
    assert env.observation_space.shape == seen.shape == (3 * env.arm.joints + 6,)


def test_it_begins_at_rest_with_the_tip_of_another_position_for_a_goal():
    env = rl.make("surgical/psm-reach-dynamic")
    state, seen = jax.jit(env.reset)(KEY)
    assert not state.v.any() and state.t == 0 and env.dt == 0.02
    np.testing.assert_array_equal(state.q, state.target)
    tip = by_matrices(env.arm, np.asarray(state.q, float))[0]
    np.testing.assert_allclose(seen[-6:-3], (state.goal - tip) / 0.05, atol=1e-5)
    depth = np.linalg.norm(state.goal)  # the wrist is 34.4 to 184.4 mm deep, the tip 19.3 mm off
    assert 0.015 < depth < 0.204 and np.linalg.norm(state.goal - tip) > 0.01


def test_time_is_counted_in_steps_until_the_last(monkeypatch):
    """Of an arm that stays where it is, so that no dynamics need be compiled."""
    still = SimpleNamespace(
        init=lambda q, v: SimpleNamespace(qpos=q, qvel=v), step=lambda body, target: body
    )
    monkeypatch.setattr(dynamic_reach.dynamics, "mechanism", lambda *args: still)
    env = rl.make("surgical/psm-reach-dynamic")
    q = jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3])
    step = jax.jit(lambda t: env.step(State(q, t, 0 * q, q, jnp.zeros(3)), 0 * q, KEY))
    for t, over in ((0, False), (env.max_steps - 2, False), (env.max_steps - 1, True)):
        out = step(jnp.int32(t))
        assert out.state.t == t + 1 and out.truncated == over
