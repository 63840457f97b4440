"""Evolution strategies: scores, the returns they rank, and what they do with failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from rl_probe import Drift

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


def test_candidates_play_the_same_episodes_and_what_they_see_is_added_to_what_was_seen():
    """By hand: from 0.25 to 1.15 in three steps of 0.3, then anew; five steps are played."""
    env, learner = Drift(rl.Discrete(2), 0.0), rl.ES(SNES(4), 3.0, 2, 5, (2,))
    rows = np.array([1.0, 4.0, -2.0, 0.5], np.float32)

    def played(key):
        state = learner.init(env, key)
        seen = normaliser.update(state.obs_stats, jnp.asarray(rows)[:, None])
        x = learner.algorithm.ask(state.search, key)
        return learner._play(env, seen, x, key)

    returns, success, seen = jax.jit(played)(jax.random.key(0))
    places = 0.25 + 0.3 * np.arange(1, 4)
    np.testing.assert_allclose(returns, np.full((4, 2), np.sum(1 - places**2)), rtol=1e-5)
    assert (success == 1).all()
    every = np.concatenate([rows, np.tile([0.25, 0.55, 0.85, 0.25, 0.55], 8)])
    assert seen.count == len(every) == 44
    np.testing.assert_allclose(seen.mean, [every.mean()], rtol=1e-5)
    np.testing.assert_allclose(seen.square, [44 * every.var()], rtol=1e-5)


def test_what_was_seen_is_kept_where_a_generation_saw_no_numbers(monkeypatch):
    env, learner, key = Drift(rl.Discrete(2), 0.0), rl.ES(SNES(4), 3.0, 2, 5, ()), jax.random.key(0)
    paid = jnp.zeros((4, 2))

    @jax.jit
    def count(rows):
        state = learner.init(env, key)
        seen = normaliser.update(state.obs_stats, rows)
        monkeypatch.setattr(rl.ES, "_play", lambda *args: (paid, paid, seen))
        return learner.update(env, state, key).obs_stats.count

    assert count(jnp.array([[1.0], [2.0], [4.0]])) == 3
    assert count(jnp.array([[1.0], [jnp.nan], [4.0]])) == 0


def test_weights_are_a_candidate_times_their_bound():
    env, x = rl.make("cartpole"), np.linspace(-1.0, 1.0, 16, dtype=np.float32)
    weights = rl.ES(max_weight=5.0, hidden_sizes=(2,))._weights(env, jnp.zeros(4))(x)
    np.testing.assert_allclose(ravel_pytree(weights)[0], 5 * x, rtol=1e-6)


def test_bad_input_is_named():
    env, key = rl.make("cartpole"), jax.random.key(0)
    with pytest.raises(ValueError, match="max_weight"):
        rl.ES(max_weight=-1.0).init(env, key)
    with pytest.raises(ValueError, match="episodes"):
        rl.ES(episodes=0).init(env, key)
    with pytest.raises(TypeError, match="ES: env is a int; it must be an environment"):
        rl.ES().init(3, key)


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
