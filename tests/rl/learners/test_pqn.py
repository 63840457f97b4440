"""Parallel Q-learning: values against the exact ones, a score, and invalid inputs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_probe import Drift, Probe, drift_outcomes, init_state, lambda_returns

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree
from jaxgpu.rl.learners import normalizer


@pytree
class Corridor:
    """Cells 0 ... 4 in a row, left or right; cell 4 pays 1 and ends; truncated after 12 steps."""

    observation_space = property(lambda self: rl.Box(0.0, 1.0, (5,)))
    action_space = property(lambda self: rl.Discrete(2))
    differentiable = property(lambda self: False)

    def reset(self, key):
        """Start in any cell but the last."""
        cell = jax.random.randint(key, (), 0, 4)
        return (cell, jnp.int32(0)), jax.nn.one_hot(cell, 5)

    def step(self, state, action, key):
        """Move by one cell, within the walls."""
        cell, t = jnp.clip(state[0] + 2 * action - 1, 0, 4), state[1] + 1
        there = cell == 4
        reward, over = jnp.where(there, 1.0, 0.0), (t >= 12) & ~there
        return rl.Step((cell, t), jax.nn.one_hot(cell, 5), reward, there, over, {"success": there})


def values(learner, env, state, observations):
    x = normalizer.apply(state.obs_stats, observations)
    return learner._q_values(env, state.params, x)


@pytest.mark.slow
def test_values_are_those_of_the_best_policy():
    """Q of cell s is 0.8^(3 - s) to the right, 0.8^(5 - s) to the left, 0.8^4 against the wall.

    q_lambda is 0, since returns over several steps include random exploration.
    """
    env = Corridor()
    learner = rl.PQN(
        learning_rate=3e-3,
        gamma=0.8,
        q_lambda=0.0,
        epsilon_finish=0.3,
        num_envs=16,
        num_steps=16,
        num_minibatches=4,
    )
    state, _ = jax.jit(lambda key: rl.learn(env, learner, key, 150))(jax.random.key(0))
    got = values(learner, env, state, jnp.eye(5)[:4])
    exact = [[0.8**4, 0.8**3], [0.8**4, 0.8**2], [0.8**3, 0.8], [0.8**2, 1.0]]
    np.testing.assert_allclose(got, exact, rtol=0.05)


@pytree
class Idle(Probe):
    """A probe that ignores which of two actions is selected."""

    action_space = rl.Discrete(2)


def test_an_update_keeps_the_shapes_of_its_state():
    env, learner = Corridor(), rl.PQN(num_envs=4, num_steps=6, num_minibatches=3)
    state = jax.eval_shape(lambda key: learner.init(env, key, 10), jax.random.key(0))
    after = jax.eval_shape(lambda s, key: learner.update(env, s, key), state, jax.random.key(1))
    shapes = lambda tree: [(x.shape, x.dtype) for x in jax.tree.leaves(tree)]
    assert jax.tree.structure(after) == jax.tree.structure(state)
    numbers = lambda state: replace(state, report=None)  # which has those of updates, once made
    assert shapes(numbers(after)) == shapes(numbers(state))


@pytest.mark.slow
def test_a_rollout_is_greedy_and_its_targets_are_q_lambda_returns():
    """Compare with Gallici et al. (2024), equation 4, by its recursion over drifting positions."""
    env = Drift(rl.Discrete(4))
    learner = rl.PQN(
        gamma=0.9,
        q_lambda=0.7,
        epsilon_start=0.0,
        epsilon_finish=0.0,
        num_envs=4,
        num_steps=8,
        num_minibatches=1,
        hidden_sizes=(4,),
    )

    def roll_out(key):
        state = init_state(learner, env, key)
        _, x, batch, _ = learner._rollout(env, state, key)
        return batch, learner._q_values(env, state.params, jnp.stack([x, x + 0.3]))

    batch, (q, ahead) = jax.tree.map(np.asarray, jax.jit(roll_out)(jax.random.key(3)))
    x, reward, ended, cut = drift_outcomes(batch["observation"][..., 0])
    assert ended.any() and cut.any() and np.ptp(q.argmax(-1)) > 0
    np.testing.assert_array_equal(batch["action"], q.argmax(-1))
    want = lambda_returns(reward, ahead.max(-1), ended, cut, 0.9, 0.7)
    np.testing.assert_allclose(batch["target"], want, rtol=1e-4, atol=1e-5)


def test_exploration_falls_linearly_and_then_stays():
    learner, env = rl.PQN(num_envs=1, num_steps=8, hidden_sizes=(1,)), Drift(rl.Discrete(2))
    state = jax.jit(lambda: init_state(learner, env, jax.random.key(0)))()
    state_at = lambda i: replace(state, update=jnp.int32(i))
    shares = [
        float(learner.epsilon(state_at(i))) for i in (0, 2, 5, 9)
    ]  # from 1 to 0.05 in five updates
    np.testing.assert_allclose(shares, [1.0, 0.62, 0.05, 0.05], rtol=1e-5)


@pytest.mark.slow
def test_a_truncated_episode_keeps_its_worth():
    """The reward is always 1, truncated every 20 steps: the value is 1 / (1 - gamma), not < 20."""
    learner = rl.PQN(
        learning_rate=3e-2,
        gamma=0.9,
        num_envs=8,
        num_steps=40,
        num_minibatches=2,
        hidden_sizes=(4,),
    )
    state, _ = jax.jit(lambda key: rl.learn(Idle(), learner, key, 300))(jax.random.key(0))
    np.testing.assert_allclose(values(learner, Idle(), state, jnp.zeros(1)), 10, rtol=0.05)


PUSH = rl.PQN(learning_rate=2e-3, num_steps=32)


def scores(env, learner, updates, limit):
    """Return the mean returns of 100 episodes after training, for each of three seeds."""

    def run_seed(key):
        state, _ = rl.learn(env, learner, key, updates)
        test_key = jax.random.fold_in(key, 1)
        return rl.evaluate(env, learner.policy(env, state), test_key, 100, limit).episode_return

    total = jax.jit(jax.vmap(run_seed))(jax.random.split(jax.random.key(0), 3))
    return np.asarray(total).mean(1)


@pytest.mark.slow
def test_the_pole_is_balanced_in_200k_steps():
    """The zoo's DQN has 500 at 50k."""
    means = scores(rl.make("cartpole"), PUSH, 195, 500)  # 199,680 steps
    assert np.median(means) >= 480, means


@pytest.mark.slow
def test_random_actions_are_held():
    """All are random first: held for ever they never change, otherwise two of three do."""
    env, key = rl.make("mountain-car"), jax.random.key(0)

    def moves(hold):
        learner = rl.PQN(hold=hold, num_envs=512, num_steps=8, hidden_sizes=(4,))
        state = jax.eval_shape(lambda key: learner.init(env, key, 1), key)
        state = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), state)
        state = replace(state, num_updates=jnp.float32(1))
        return learner._rollout(env, state, key)[2]["action"]

    action = np.asarray(jax.jit(jax.vmap(moves))(jnp.array([1.0, 0.0, 0.7])))
    found = np.mean(action[:, 1:] != action[:, :-1], (1, 2))
    np.testing.assert_allclose(found, [0.0, 2 / 3, 0.2], atol=5 * 0.5 / (7 * 512) ** 0.5)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="PQN: Pendulum has real actions"):
        rl.PQN().init(rl.make("pendulum"), jax.random.key(0))
    with pytest.raises(ValueError, match="7 minibatches of 32 environments times 64 steps"):
        rl.PQN(num_minibatches=7).init(rl.make("cartpole"), jax.random.key(0))
