"""Training in the package's loop, evaluation, and statistics over runs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from rl_probe import Probe

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree
from jaxgpu.runs.checkpoint import CheckpointError

SMALL = rl.PPO(num_envs=4, num_steps=8, update_epochs=1, num_minibatches=2, hidden_sizes=(8,))
ENV = rl.make("cartpole")


@pytest.mark.slow
def test_the_pure_loop_trains_as_the_one_on_the_host():
    key = jax.random.key(0)
    whole = rl.train(ENV, SMALL, key, 6 * 32)
    state, _ = jax.jit(lambda key: rl.learn(ENV, SMALL, key, 6))(key)
    for a, b in zip(jax.tree.leaves(state.params), jax.tree.leaves(whole.state.params)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_another_network_is_refused(tmp_path):
    rl.train(ENV, SMALL, jax.random.key(0), 32, out=tmp_path, schedule=64)
    wider = rl.PPO(num_envs=4, num_steps=8, update_epochs=1, num_minibatches=2, hidden_sizes=(9,))
    with pytest.raises(CheckpointError, match=r"hidden_sizes\[0\] was 8, is 9"):
        rl.train(ENV, wider, jax.random.key(0), 64, out=tmp_path, resume=True)


@pytree
class Counting:
    """A learner whose state counts the planned and the finished updates."""

    def init(self, env, key, num_updates=None):
        return jnp.int32([num_updates, 0])

    def update(self, env, state, key):
        return state + jnp.int32([0, 1])


@pytest.mark.parametrize("count", [0, 3])
def test_a_learner_is_told_of_its_updates_and_of_one_where_there_are_none(count):
    state, seen = rl.learn(Probe(), Counting(), jax.random.key(0), count, measure=lambda s: s[1])
    np.testing.assert_array_equal(state, [max(count, 1), count])
    np.testing.assert_array_equal(seen, np.arange(count + 1))


@pytest.mark.parametrize("schedule", [None, 7])
def test_the_learners_of_a_sweep_are_told_of_the_updates_of_all_parts(schedule):
    keys = jax.random.split(jax.random.key(0), 2)
    run = rl.sweep(
        Probe(), Counting(), keys, parts=3, every=2, schedule=schedule, measure=lambda s: s[1]
    )
    np.testing.assert_array_equal(run.state, [[schedule or 6, 6]] * 2)
    np.testing.assert_array_equal(run.history, [[0, 0], [2, 2], [4, 4], [6, 6]])


def test_too_few_steps_are_refused():
    with pytest.raises(ValueError, match="steps=31; one update has 32"):
        rl.train(ENV, SMALL, jax.random.key(0), 31)


def test_episodes_count_until_they_end():
    play = lambda key: rl.evaluate(Probe(), lambda x: x, key, 5, 50)
    scores = jax.jit(play)(jax.random.key(0))
    np.testing.assert_array_equal(scores.episode_return, 20)
    np.testing.assert_array_equal(scores.episode_length, 20)
    assert scores.success.all()
    cut = jax.jit(lambda key: rl.evaluate(Probe(), lambda x: x, key, 5, 7))(jax.random.key(0))
    assert not cut.success.any() and (cut.episode_length == 7).all()


@pytree
class Paired:
    """A counter that ends after its own number of steps, with reward [1, its time]."""

    def reset(self, key):
        last = jax.random.randint(key, (), 1, 6)
        return (last, jnp.int32(0)), jnp.zeros(1)

    def step(self, state, action, key):
        last, t = state[0], state[1] + 1
        reward = jnp.stack([1.0, t.astype(float)])
        return rl.Step((last, t), jnp.zeros(1), reward, t >= last, jnp.bool_(False), {})


def test_each_objective_is_summed_until_its_episode_ends():
    """An episode of n steps returns n and n (n + 1) / 2; the lengths differ."""
    play = lambda key: rl.evaluate(Paired(), lambda x: jnp.zeros(1), key, 8, 9)
    scores = jax.jit(play)(jax.random.key(0))
    n = np.asarray(scores.episode_length)
    assert len(set(n)) > 1 and scores.episode_return.shape == (8, 2)
    np.testing.assert_array_equal(scores.episode_return, np.stack([n, n * (n + 1) / 2], 1))


def test_the_interquartile_mean_and_its_interval():
    x = np.random.default_rng(0).normal(5, 1, 40).astype(np.float32)
    middle, low, high = rl.interquartile_mean(x, jax.random.key(0))
    assert middle == pytest.approx(scipy.stats.trim_mean(x, 0.25), rel=1e-6)
    assert (middle, low, high) == rl.interquartile_mean(x, jax.random.key(0), draws=2000)
    statistic = lambda x, axis: scipy.stats.trim_mean(x, 0.25, axis=axis)
    exact = scipy.stats.bootstrap((x,), statistic, method="percentile", rng=1).confidence_interval
    np.testing.assert_allclose([low, high], exact, atol=0.06)  # the draws differ


@pytest.mark.parametrize("draws", [0, -1, 2.5, np.nan, True, [3], None])
def test_an_interval_of_no_count_of_draws_is_refused(draws):
    with pytest.raises((ValueError, TypeError), match="interquartile_mean: draws=.* whole number"):
        rl.interquartile_mean(np.arange(4.0), jax.random.key(0), draws)


def test_an_interval_takes_counts_of_any_whole_type_and_is_of_the_host():
    x, key = np.arange(4.0), jax.random.key(0)
    assert rl.interquartile_mean(x, key, np.int64(50)) == rl.interquartile_mean(x, key, 50)
    with pytest.raises(TypeError, match="interquartile_mean: scores are traced"):
        jax.jit(lambda x: rl.interquartile_mean(x, key))(x)
    with pytest.raises(MemoryError, match="interval"):
        rl.interquartile_mean(x, key, 10**11)


@pytest.mark.slow
def test_a_second_training_of_other_numbers_compiles_nothing():
    """Early stopping compiles nothing either: numbers of learner and environment are operands."""
    first = rl.train(ENV, SMALL, jax.random.key(0), 3 * 32, until=enough)
    assert first.timing.compile > 0
    other, env = replace(SMALL, learning_rate=5e-3, gamma=0.9), rl.make("cartpole", gravity=3.0)
    made, key = [], jax.random.key(1)
    listen = lambda name, *_, **__: made.append(name)
    jax.monitoring.register_event_duration_secs_listener(listen)
    second = rl.train(env, other, key, 4 * 32, until=enough)
    jax.monitoring.unregister_event_duration_listener(listen)
    assert second.timing.compile == 0
    assert not [name for name in made if "backend_compile" in name]
    assert second.timing.steps == 2 and second.history["episodes"].shape == (3,)
    moved = jax.tree.map(lambda a, b: jnp.any(a != b), first.state.params, second.state.params)
    assert any(jax.tree.leaves(moved))
    scores = rl.evaluate(env, second.policy, jax.random.key(2), 2, 5)
    assert (scores.episode_length == 5).all()


def enough(state):
    """Return whether two updates are finished."""
    return state.update >= 2
