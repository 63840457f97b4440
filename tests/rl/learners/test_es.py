"""Evolution strategies: scores, the returns they rank, and what they do with failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.evolution.single import SNES
from jaxgpu.pytree import pytree
from jaxgpu.rl.learners import normaliser


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, limit, generations, bar",
    [("mountain-car-continuous", 999, 30, 90), ("cartpole", 500, 20, 500)],
)
def test_scores(name, limit, generations, bar):
    """Median of eight seeds, 64 episodes each, at the defaults."""
    env, learner = rl.make(name), rl.ES(max_steps=limit)

    def one(key):
        state, _ = rl.learn(env, learner, key, generations)
        test_key = jax.random.fold_in(key, 1)
        return rl.evaluate(env, learner.policy(env, state), test_key, 64, limit).episode_return

    total = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 8))
    means = np.asarray(total).mean(1)
    assert np.median(means) >= bar, means


@pytest.mark.slow
def test_returns_are_those_of_each_candidate():
    """Against `evaluate` of its policy alone, from the same beginnings."""
    env, learner = rl.make("cartpole"), rl.ES(SNES(4), episodes=3, max_steps=60, hidden_sizes=(4,))
    state = learner.init(env, jax.random.key(0))
    rows = jax.random.normal(jax.random.key(1), (60, 4))
    seen = normaliser.update(state.obs_stats, rows)
    x = jax.random.uniform(jax.random.key(2), (4, state.search.mean.shape[0]), minval=-1)
    key = jax.random.key(3)
    total, success, _ = jax.jit(lambda x: learner._play(env, seen, x, key))(x)

    def alone(row):
        weights = learner._weights(env, seen.mean)(row)
        act = lambda o: learner._act(env, weights, normaliser.apply(seen, o))
        return rl.evaluate(env, act, key, 3, 60).episode_return

    np.testing.assert_array_equal(total, jax.jit(jax.vmap(alone))(x))
    assert len(np.unique(total)) > 3 and not success.any()


@pytree
class Cliff:
    """Pays the square root of minus the action: nan above 0."""

    observation_space = property(lambda self: rl.Box(-1.0, 1.0, (1,)))
    action_space = property(lambda self: rl.Box(-1.0, 1.0, (1,)))
    differentiable = property(lambda self: False)

    def reset(self, key):
        """One state."""
        return jnp.int32(0), jnp.ones(1)

    def step(self, state, action, key):
        """Two steps."""
        info = {"success": jnp.bool_(False)}
        reward = jnp.sqrt(-action[0])
        return rl.Step(state + 1, jnp.ones(1), reward, jnp.bool_(False), state >= 1, info)


@pytest.mark.slow
def test_a_return_that_is_nan_never_wins():
    env, learner = Cliff(), rl.ES(SNES(8), max_steps=2, hidden_sizes=())
    state, _ = jax.jit(lambda key: rl.learn(env, learner, key, 40))(jax.random.key(0))
    assert learner.policy(env, state)(jnp.ones(1)) < -0.9
