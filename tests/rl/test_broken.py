"""Environments that fail: copies that are not finite are dropped, reset and counted.

`learners/test_training.py` trains every learner in such an environment.
"""

import dataclasses
from typing import Any

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_learners import LEARNERS
from rl_probe import Brittle, corrupt, is_finite

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree
from jaxgpu.rl import vector


@pytest.mark.slow
@pytest.mark.parametrize("name", ["PPO, scaled", "SHAC"])
def test_where_nothing_breaks_nothing_changes(name, monkeypatch):
    """Compare with a program without checks, up to rounding, since it may be fused differently."""
    task, learner = LEARNERS[name]

    def train():
        few = {"xla_backend_optimization_level": 0}
        program = jax.jit(
            lambda key: rl.learn(rl.make(task), learner, key, 3), compiler_options=few
        )
        return program(jax.random.key(1))

    looked = train()
    monkeypatch.setattr(vector, "is_finite", lambda tree, before=None: jnp.bool_(True))
    conformance.assert_same(train(), looked, 1e-5)


def test_a_broken_copy_begins_anew_and_the_others_go_on():
    """Copies 1 and 3 of four fail in the second step."""

    @pytree
    class Pole:
        env: Any = rl.make("pendulum")
        action_space = rl.Box(-1.0, 1.0, (1,))

        def reset(self, key):
            return self.env.reset(key)

        def step(self, state, action, key):
            bad = (action[0] > 0.5) & (state.t == 1)
            return corrupt(self.env.step(state, action, key), bad)

    copies = rl.vectorize(Pole(), 4)
    action = np.float32([[0.1], [0.9], [0.2], [1.0]])
    step = jax.jit(copies.step)
    before, _ = step(jax.jit(copies.reset)(jax.random.key(0)), action, jax.random.key(1))
    after, out = step(before, action, jax.random.key(2))
    np.testing.assert_array_equal(out.broken, [False, True, False, True])
    np.testing.assert_array_equal(after.state.t, [2, 0, 2, 0])
    np.testing.assert_array_equal(out.final[1::2], before.observation[1::2])
    np.testing.assert_array_equal(after.episode_length, [2, 0, 2, 0])
    assert is_finite((after, out)) and not out.done.any() and np.sum(out.broken) == 2
    np.testing.assert_array_equal(out.reward == 0, out.broken)


@pytree
class Hidden:
    """Counts steps, and hides its state: a number from 0 on, infinities, and counts."""

    observation_space, action_space = rl.Box(-1.0, 1.0, (1,)), rl.Box(-1.0, 1.0, (1,))
    differentiable = False

    def reset(self, key):
        return (jnp.zeros(2), jnp.array([jnp.inf, -jnp.inf]), jnp.int32(0)), jnp.zeros(1)

    def step(self, state, action, key):
        place, far, count = state
        state = (place + action, far, count + 1)
        return rl.Step(state, jnp.zeros(1), jnp.ones(()), jnp.bool_(False), jnp.bool_(False), {})


def test_a_state_that_breaks_unseen_begins_anew():
    """Nan and a new infinity count, though observations and rewards are finite; old ones do not."""
    copies, huge = rl.vectorize(Hidden(), 3), np.float32(3e38)
    step, begin = jax.jit(copies.step), jax.jit(copies.reset)(jax.random.key(0))
    state, _ = step(begin, np.ones((3, 1), np.float32), jax.random.key(1))
    hurt = np.array(state.state[0])
    hurt[1, 0], hurt[2, 1] = np.nan, huge
    state = dataclasses.replace(state, state=(hurt, *state.state[1:]))
    after, out = step(state, np.full((3, 1), huge), jax.random.key(2))
    np.testing.assert_array_equal(out.broken, [False, True, True])
    np.testing.assert_array_equal(after.state[0], [[huge, huge], [0, 0], [0, 0]])
    np.testing.assert_array_equal(after.state[1], [[np.inf, -np.inf]] * 3)
    np.testing.assert_array_equal(out.reward, [1, 0, 0])
    begun = vector.replace_broken((jnp.array([jnp.nan, 1.0, jnp.inf]), jnp.zeros((3, 1))))
    np.testing.assert_array_equal(begun[0], [1, 1, np.inf])


def test_no_finite_start_is_refused_on_the_host():
    env, (_, learner) = Brittle(rl.make("cartpole"), 0.0, 1.0), LEARNERS["PPO"]
    with pytest.raises(ValueError, match=r"train: no copy of Brittle starts with finite values"):
        rl.train(env, learner, jax.random.key(0), 8)
