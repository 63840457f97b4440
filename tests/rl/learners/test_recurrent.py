"""PPO with a memory: replay of rollouts, a task that needs memory, and invalid inputs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree

SMALL = rl.RecurrentPPO(
    rl.PPO(num_envs=4, num_steps=6, update_epochs=1, num_minibatches=2), hidden_size=8
)


@pytree
class Corridor:
    """A T-maze: a bit is shown only at the entrance and needed at the junction, 8 steps on."""

    observation_space = rl.Box(-1.0, 1.0, (2,))
    action_space = rl.Discrete(2)
    differentiable = False

    def reset(self, key):
        bit = jax.random.bernoulli(key)
        return (bit, jnp.int32(0)), jnp.stack([jnp.where(bit, 1.0, -1.0), 0.0])

    def step(self, state, action, key):
        bit, t = state[0], state[1] + 1
        over = t >= 8
        right = over & ((action == 1) == bit)
        observation = jnp.stack([jnp.zeros(()), jnp.where(t == 7, 1.0, 0.0)])
        reward = jnp.where(right, 1.0, 0.0)
        return rl.Step((bit, t), observation, reward, over, over & False, {"success": right})


def success_rate(env, learner, updates, seeds, limit):
    """Return the success rate of 1000 episodes after training, for each seed."""

    def run_seed(key):
        state, _ = rl.learn(env, learner, key, updates)
        test_key = jax.random.fold_in(key, 1)
        return rl.evaluate(env, learner.policy(env, state), test_key, 1000, limit).success

    return np.asarray(jax.jit(jax.vmap(run_seed))(jax.random.split(jax.random.key(0), seeds))).mean(
        1
    )


@pytest.mark.slow
def test_what_is_replayed_is_what_was_played():
    """Compare before any training step, along rollouts in which episodes end."""
    env = rl.make("cartpole-masked", max_steps=4)
    state = jax.jit(lambda key: SMALL.init(env, key))(jax.random.key(0))
    play = jax.jit(lambda state, key: SMALL._rollout(env, state, key)[:2])
    full = replace(state, carry=jnp.ones_like(state.carry))  # but all copies begin an episode
    one, other = (play(s, jax.random.key(0))[1]["log_prob"] for s in (state, full))
    np.testing.assert_array_equal(one, other)
    for seed in range(2):  # the second begins with memories of the first
        rolled, part = play(state, jax.random.key(seed))
        choice, value = SMALL._evaluate_rollouts(SMALL._network(env), state.params, part)
        np.testing.assert_allclose(choice.log_prob(part["action"]), part["log_prob"], rtol=1e-5)
        np.testing.assert_allclose(value + part["advantage"], part["target"], rtol=1e-4, atol=1e-5)
        assert part["is_first"].sum() >= 4 and (seed == 0 or np.abs(state.carry).min() > 0)
        state = replace(state, **rolled)


@pytest.mark.slow
def test_the_way_through_a_maze_is_found_only_with_a_memory():
    """Take the worst success of two seeds with it, and the best without: chance level."""
    ppo = rl.PPO(
        learning_rate=5e-3,
        num_envs=64,
        num_steps=16,
        update_epochs=4,
        num_minibatches=4,
        hidden_sizes=(16,),
    )
    assert success_rate(Corridor(), rl.RecurrentPPO(ppo, hidden_size=16), 60, 2, 8).min() >= 0.95
    assert success_rate(Corridor(), ppo, 60, 2, 8).max() <= 0.6


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="3 minibatches of 64 environments, which are not split"):
        rl.RecurrentPPO(rl.PPO(num_minibatches=3)).init(rl.make("cartpole"), jax.random.key(0))
