"""Environments that break: what is not finite is left out, begun anew, counted, and spoils nothing.

One nan in one of many copies once turned all weights, and what observations are scaled by, into
nan for good.
"""

import dataclasses
from typing import Any

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_learners import LEARNERS

from jaxgpu import rl
from jaxgpu.pytree import pytree
from jaxgpu.rl import vector


@pytree
class Brittle:
    """An environment whose steps lead to nan, and pay inf, by chance; a start may be nan too."""

    env: Any
    chance: float = 0.1
    torn: float = 0.0  # chance of a start

    observation_space = property(lambda self: self.env.observation_space)
    action_space = property(lambda self: self.env.action_space)
    differentiable = property(lambda self: self.env.differentiable)

    def reset(self, key):
        """Of the environment, or nan."""
        return spoilt(self.env.reset(key), jax.random.bernoulli(key, self.torn))

    def step(self, state, action, key):
        """Of the environment, or nan, slopes included."""
        step = self.env.step(state, action, key)
        bad = jax.random.bernoulli(key, self.chance)
        state, observation = spoilt((step.state, step.observation), bad)
        reward = step.reward + jnp.where(bad, jnp.inf, 0.0)
        return step._replace(state=state, observation=observation, reward=reward)


def spoilt(tree, bad):
    factor = jnp.where(bad, jnp.nan, 1.0)
    real = lambda x: jnp.issubdtype(x.dtype, jnp.floating)
    return jax.tree.map(lambda x: x * factor if real(x) else x, tree)


def marked(name):
    slow = name not in ("PPO", "SHAC")
    return pytest.param(*LEARNERS[name], id=name, marks=pytest.mark.slow if slow else ())


def finite(tree):
    reals = (x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating))
    return all(bool(jnp.all(jnp.isfinite(x))) for x in reals)


@pytest.mark.slow
@pytest.mark.parametrize("name, learner", [marked(name) for name in LEARNERS])
def test_what_breaks_is_counted_and_spoils_nothing(name, learner):
    env, updates = Brittle(rl.make(name), 0.15, 0.1), 12
    state, reports = jax.jit(lambda key: rl.learn(env, learner, key, updates))(jax.random.key(1))
    learnt = state.search.mean if isinstance(learner, rl.ES) else (state.params, state.opt_state)
    assert finite(learnt) and finite(state.obs_stats) and finite(reports)
    assert 0 < reports["broken"].sum() < updates * learner.steps_per_update


@pytest.mark.slow
@pytest.mark.parametrize("name, learner", LEARNERS.values(), ids=LEARNERS)
def test_where_nothing_breaks_nothing_changes(name, learner, monkeypatch):
    """Beside a program that does not look; what is fused otherwise may be rounded otherwise."""
    train = lambda key: rl.learn(rl.make(name), learner, key, 3)
    looked = jax.jit(lambda key: train(key))(jax.random.key(1))
    monkeypatch.setattr(vector, "finite", lambda tree, before=None: jnp.bool_(True))
    conformance.same(jax.jit(train)(jax.random.key(1)), looked, 1e-5)


def test_a_broken_copy_begins_anew_and_the_others_go_on():
    """Copies 1 and 3 of four break in the second step."""

    @pytree
    class Pole:
        env: Any = rl.make("pendulum")
        action_space = rl.Box(-1.0, 1.0, (1,))

        def reset(self, key):
            return self.env.reset(key)

        def step(self, state, action, key):
            bad = (action[0] > 0.5) & (state.t == 1)
            return spoilt(self.env.step(state, action, key), bad)

    copies = rl.vectorize(Pole(), 4)
    action = jnp.array([[0.1], [0.9], [0.2], [1.0]])
    before, _ = copies.step(copies.reset(jax.random.key(0)), action, jax.random.key(1))
    after, out = copies.step(before, action, jax.random.key(2))
    np.testing.assert_array_equal(out.broken, [False, True, False, True])
    np.testing.assert_array_equal(after.state.t, [2, 0, 2, 0])
    np.testing.assert_array_equal(out.final[1::2], before.observation[1::2])
    np.testing.assert_array_equal(after.episode_length, [2, 0, 2, 0])
    assert finite((after, out)) and not out.done.any() and out.report()["broken"] == 2
    np.testing.assert_array_equal(out.reward == 0, out.broken)


@pytree
class Hidden:
    """Counts steps, and shows nothing of its state: a number from 0 on, infinities, and counts."""

    observation_space, action_space = rl.Box(-1.0, 1.0, (1,)), rl.Box(-1.0, 1.0, (1,))
    differentiable = False

    def reset(self, key):
        return (jnp.zeros(2), jnp.array([jnp.inf, -jnp.inf]), jnp.int32(0)), jnp.zeros(1)

    def step(self, state, action, key):
        place, far, count = state
        state = (place + action, far, count + 1)
        return rl.Step(state, jnp.zeros(1), jnp.ones(()), jnp.bool_(False), jnp.bool_(False), {})


def test_a_state_that_breaks_unseen_begins_anew():
    """Nan and a new infinity count, though observations and rewards are whole; old ones do not."""
    copies, huge = rl.vectorize(Hidden(), 3), np.float32(3e38)
    state, _ = copies.step(copies.reset(jax.random.key(0)), jnp.ones((3, 1)), jax.random.key(1))
    hurt = state.state[0].at[1, 0].set(jnp.nan).at[2, 1].set(huge)
    state = dataclasses.replace(state, state=(hurt, *state.state[1:]))
    after, out = copies.step(state, jnp.full((3, 1), huge), jax.random.key(2))
    np.testing.assert_array_equal(out.broken, [False, True, True])
    np.testing.assert_array_equal(after.state[0], [[huge, huge], [0, 0], [0, 0]])
    np.testing.assert_array_equal(after.state[1], [[np.inf, -np.inf]] * 3)
    np.testing.assert_array_equal(out.reward, [1, 0, 0])
    begun = vector.mended((jnp.array([jnp.nan, 1.0, jnp.inf]), jnp.zeros((3, 1))))
    np.testing.assert_array_equal(begun[0], [1, 1, np.inf])


def test_no_finite_start_is_refused_on_the_host():
    env = Brittle(rl.make("cartpole"), 0.0, 1.0)
    with pytest.raises(ValueError, match=r"train: no copy of Brittle begins with finite numbers"):
        rl.train(
            env,
            rl.PPO(num_envs=2, num_steps=4, update_epochs=1, num_minibatches=1),
            jax.random.key(0),
            8,
        )
