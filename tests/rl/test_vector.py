"""Vectorized environments: restarts, true last observations, and sums of episodes."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl


@cache
def play(restart, steps=12, num_envs=16):
    """Return the first state, and observations and outcomes of all steps, of 4-step episodes."""
    envs = rl.vectorize(rl.make("pendulum", max_steps=4), num_envs, restart)
    state = jax.jit(envs.reset)(jax.random.key(0))

    def move(state, key):
        state, out = envs.step(state, jnp.zeros((num_envs, 1)), key)
        return state, (state.observation, out)

    _, (observations, out) = jax.jit(lambda s: jax.lax.scan(move, s, KEYS[:steps]))(state)
    return state, np.asarray(observations), jax.tree.map(np.asarray, out)


KEYS = jax.random.split(jax.random.key(1), 100)


@pytest.mark.slow
@pytest.mark.parametrize("restart", ["bank", "fresh", "same"])
def test_an_episode_ends_in_its_true_last_observation(restart):
    _, observations, out = play(restart)
    over = np.arange(12) % 4 == 3
    np.testing.assert_array_equal(out.truncated, np.broadcast_to(over[:, None], (12, 16)))
    assert not out.terminated.any()
    np.testing.assert_array_equal(out.final[~over], observations[~over])
    assert (out.final[over] != observations[over]).any(-1).all()
    np.testing.assert_array_equal(out.observation, observations)


@pytest.mark.slow
@pytest.mark.parametrize("restart, distinct", [("bank", 2), ("fresh", 16), ("same", 16)])
def test_beginnings(restart, distinct):
    """Count the distinct starts of 16 copies; none returns in the next round unless it is kept."""
    state, observations, _ = play(restart)
    second, third = observations[3], observations[7]
    assert len(np.unique(second, axis=0)) == distinct
    again = np.isin(second[:, 0], third[:, 0])
    assert again.all() if restart == "same" else not again.any()
    if restart == "same":
        np.testing.assert_array_equal(second, state.observation)


@pytest.mark.slow
def test_copies_of_learners_begin_each_where_no_other_does():
    """Eight copies that are truncated together all restart differently by default.

    Formerly, learners with 8 copies used a single start for all.
    """
    env = rl.make("pendulum", max_steps=4)
    learner = rl.PPO(num_envs=8, num_steps=4, update_epochs=1, num_minibatches=1, hidden_sizes=(4,))
    state = jax.jit(lambda key: learner.init(env, key, 2))(jax.random.key(0))
    after = jax.jit(lambda state: learner.update(env, state, jax.random.key(1)))(state)
    assert (after.env_state.episode_length == 0).all()
    assert len(np.unique(after.env_state.observation, axis=0)) == 8
    assert rl.vectorize(env, 8).restart == "fresh"


@pytest.mark.slow
@pytest.mark.parametrize("restart", ["bank", "same"])
def test_what_is_drawn_for_many_steps_at_once_is_what_each_draws(restart):
    envs = rl.vectorize(rl.make("pendulum", max_steps=4), 16, restart)
    action, (state, observations, whole) = np.zeros((16, 1), np.float32), play(restart)

    @jax.jit
    def pass_forth(state):
        drawn = jax.vmap(lambda key: envs.draw(state, key))(KEYS[:12])
        return jax.lax.scan(lambda s, i: envs.step_with(s, action, i), state, drawn)

    last, out = pass_forth(state)
    np.testing.assert_array_equal(out.observation, observations)
    np.testing.assert_array_equal(last.observation, observations[-1])
    np.testing.assert_array_equal(out.reward, whole.reward)


@pytest.mark.slow
def test_sums_of_an_episode_start_anew():
    _, _, out = play("fresh")
    np.testing.assert_array_equal(out.info["episode_length"][:, 0], [1, 2, 3, 4] * 3)
    np.testing.assert_allclose(out.info["episode_return"][7], out.reward[4:8].sum(0), rtol=1e-5)


@pytest.mark.slow
def test_no_gradient_flows_into_the_next_episode():
    envs = rl.vectorize(rl.make("pendulum", max_steps=1), 2)

    def later_speed(action):
        new, _ = envs.step(envs.reset(jax.random.key(0)), action, jax.random.key(1))
        return jnp.sum(new.state.angular_velocity)

    np.testing.assert_array_equal(jax.jit(jax.grad(later_speed))(np.ones((2, 1), np.float32)), 0)


def test_a_report_has_the_means_of_the_episodes_that_ended_and_zeros_where_none_did():
    """Four copies: one terminated, one was truncated, one failed and one continues."""
    yes = lambda *places: np.isin(np.arange(4), places)
    out = rl.vector.Outcome(
        observation=None,
        final=None,
        reward=np.zeros(4, np.float32),
        terminated=yes(0),
        truncated=yes(1),
        info={"episode_return": np.float32([3.0, 5.0, 100.0, 100.0]), "success": yes(1, 2, 3)},
        broken=yes(2),
    )
    means = {"episodes": 2, "episode_return": 4, "success": 0.5, "broken": 1}
    assert {name: float(x) for name, x in out.report().items()} == means
    none = out._replace(terminated=yes(), truncated=yes(), broken=yes()).report()
    assert {name: float(x) for name, x in none.items()} == dict.fromkeys(means, 0)


def test_bad_input_is_named():
    with pytest.raises(
        ValueError, match="vectorize: num_envs=0; it must be a whole number of at least 1"
    ):
        rl.vectorize(rl.make("pendulum"), 0)
    with pytest.raises(ValueError, match="restart='old'; use one of bank"):
        rl.vectorize(rl.make("pendulum"), 2, "old")
