"""A PPO for CartPole after PureJaxRL, to compare with: its sizes and rates, reimplemented here.

Lu et al. (2022), github.com/luchris429/purejaxrl, which is not a package. As in PureJaxRL: gymnax's
CartPole, dense layers in two towers of 64 tanh units, clipped values, truncated episodes treated as
terminated, no normalisation of observations and rewards, a learning rate that decays to zero.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

SIZES = (64, 64)


class Categorical(NamedTuple):
    """A categorical distribution over two actions, with distrax's methods."""

    logits: Any  # [..., 2]

    def sample(self, key: Any) -> Any:
        """Sample random actions."""
        return jax.random.categorical(key, self.logits)

    def log_prob(self, action: Any) -> Any:
        """Return the log probability, [...]."""
        logs = jax.nn.log_softmax(self.logits)
        taken = jax.nn.one_hot(action, logs.shape[-1], dtype=bool)
        return jnp.sum(jnp.where(taken, logs, 0.0), -1)

    def entropy(self) -> Any:
        """Return the entropy in nats, [...]."""
        logs = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(logs) * logs, -1)


def init_towers(key: Any) -> list[list[tuple[Any, Any]]]:
    """Return the weights of two towers, from four observations to two logits and to a value."""

    def init_layer(key: Any, shape: tuple[int, int], scale: float) -> tuple[Any, Any]:
        return jax.nn.initializers.orthogonal(scale)(key, shape), jnp.zeros(shape[1])

    def init_tower(key: Any, outputs: int, scale: float) -> list[tuple[Any, Any]]:
        keys, widths = jax.random.split(key, 3), (4, *SIZES, outputs)
        shapes = zip(keys, zip(widths, widths[1:]), (2**0.5, 2**0.5, scale))
        return [init_layer(*one) for one in shapes]

    choice_key, value_key = jax.random.split(key)
    return [init_tower(choice_key, 2, 0.01), init_tower(value_key, 1, 1.0)]


def apply_towers(weights: Any, x: Any) -> tuple[Categorical, Any]:
    """Return the action distribution and the value at observations [..., 4]."""

    def apply_tower(tower: Any, x: Any) -> Any:
        inner = (((x.ndim - 1,), (0,)), ((), ()))
        dense = lambda x, layer: (
            jax.lax.dot_general(x, layer[0], inner, precision="highest") + layer[1]
        )
        for layer in tower[:-1]:
            x = jnp.tanh(dense(x, layer))
        return dense(x, tower[-1])

    return Categorical(apply_tower(weights[0], x)), apply_tower(weights[1], x)[..., 0]


@dataclass(frozen=True)
class ReferencePPO:
    """Sizes and learning rate of the training."""

    num_updates: int
    num_envs: int = 4
    num_steps: int = 128
    update_epochs: int = 4
    num_minibatches: int = 4
    learning_rate: float = 2.5e-4

    def learn(self, key: Any) -> dict[str, Any]:
        """Train, and return the mean return and number of ended episodes of each update."""
        env, params = import_module("gymnax").make("CartPole-v1")
        falls = optax.linear_schedule(
            self.learning_rate, 0.0, self.num_updates * self.update_epochs * self.num_minibatches
        )
        adam = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(falls, eps=1e-5))
        start = jax.random.split(key, self.num_envs)
        x, state = jax.vmap(env.reset, (0, None))(start, params)
        weights = init_towers(key)
        zero = jnp.zeros(self.num_envs)
        carry = (weights, adam.init(weights), x, state, zero)

        def move(carry: Any, key: Any) -> tuple[Any, Any]:
            weights, x, state, total = carry
            act_key, step_key = jax.random.split(key)
            choice, value = apply_towers(weights, x)
            action = choice.sample(act_key)
            each = jax.random.split(step_key, self.num_envs)
            out = jax.vmap(env.step, (0, 0, 0, None))(each, state, action, params)
            after, state, reward = out[:3]
            done = out[3] if len(out) == 5 else out[3] | out[4]
            row = (x, action, choice.log_prob(action), value, reward, done, total + reward)
            return (weights, after, state, jnp.where(done, 0.0, total + reward)), row

        def update(carry: Any, key: Any) -> tuple[Any, Any]:
            weights, opt_state, *world = carry
            roll_key, learn_key = jax.random.split(key)
            keys = jax.random.split(roll_key, self.num_steps)
            (_, *world), rows = jax.lax.scan(move, (weights, *world), keys)
            batch = self._make_batch(rows, apply_towers(weights, world[0])[1])
            learnt = (weights, opt_state)
            for pass_key in jax.random.split(learn_key, self.update_epochs):
                learnt = self._run_epoch(adam, learnt, batch, pass_key)
            done, total = rows[5], rows[6]
            ended = jnp.sum(done)
            mean = jnp.sum(jnp.where(done, total, 0.0)) / jnp.maximum(ended, 1)
            return (*learnt, *world), {"episode_return": mean, "episodes": ended}

        return jax.lax.scan(update, carry, jax.random.split(key, self.num_updates))[1]

    def _make_batch(self, rows: Any, last: Any) -> Any:
        x, action, log_prob, value, reward, done, _ = rows

        def accumulate_advantage(later: Any, row: Any) -> tuple[Any, Any]:
            advantage, next_value = later
            reward, value, done = row
            on = jnp.where(done, 0.0, 1.0)
            error = reward + 0.99 * next_value * on - value
            advantage = error + 0.99 * 0.95 * on * advantage
            return (advantage, value), advantage

        start = (jnp.zeros_like(last), last)
        advantage = jax.lax.scan(accumulate_advantage, start, (reward, value, done), reverse=True)[
            1
        ]
        batch = (x, action, log_prob, value, advantage, advantage + value)
        return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), batch)

    def _run_epoch(self, adam: Any, learnt: Any, batch: Any, key: Any) -> Any:
        def loss(weights: Any, part: Any) -> Any:
            x, action, log_prob, old, advantage, target = part
            choice, value = apply_towers(weights, x)
            advantage = (advantage - jnp.mean(advantage)) / (jnp.std(advantage) + 1e-8)
            ratio = jnp.exp(choice.log_prob(action) - log_prob)
            climb = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
            near = old + jnp.clip(value - old, -0.2, 0.2)
            error = jnp.maximum((value - target) ** 2, (near - target) ** 2)
            return 0.25 * jnp.mean(error) - jnp.mean(climb) - 0.01 * jnp.mean(choice.entropy())

        def step(learnt: Any, part: Any) -> tuple[Any, None]:
            weights, opt_state = learnt
            slope = jax.grad(loss)(weights, part)
            move, opt_state = adam.update(slope, opt_state)
            return (optax.apply_updates(weights, move), opt_state), None

        order = jax.random.permutation(key, self.num_envs * self.num_steps)
        parts = jax.tree.map(
            lambda a: a[order].reshape(self.num_minibatches, -1, *a.shape[1:]), batch
        )
        return jax.lax.scan(step, learnt, parts)[0]
