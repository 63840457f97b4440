"""Parallel Q-learning without a replay buffer or a target network.

Gallici et al. (2024), arXiv:2407.04811: many copies explore greedily but for a falling share of
random actions, a network with LayerNorm learns their Q(lambda) returns in a few passes and forgets
them. Departures: observations are normalised, the learning rate falls linearly to zero, and a
truncated episode is bootstrapped with the value of its true last observation.
"""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, static
from jaxgpu.rl import normaliser, optimiser
from jaxgpu.rl.advantage import advantages
from jaxgpu.rl.environment import Environment
from jaxgpu.rl.networks import MLP
from jaxgpu.rl.spaces import Discrete
from jaxgpu.rl.vectorize import VectorState, vectorize


@pytree
class PQN:
    """What to run; numbers are leaves, to be vmapped over."""

    learning_rate: Array | float = 1e-3  # [] at the start
    discount: Array | float = 0.99  # [] gamma
    trace: Array | float = 0.65  # [] lambda
    explore: Array | float = 0.05  # [] share of random actions in the end
    settle: Array | float = 0.5  # [] share of the updates in which it falls from 1 to that
    max_gradient: Array | float = 10.0  # [] norm
    updates: Array | float = 1e9  # [] after which the learning rate is zero
    copies: int = static(default=32)  # B
    horizon: int = static(default=64)  # T, steps of each copy between updates
    epochs: int = static(default=4)
    minibatches: int = static(default=8)
    hidden: tuple[int, ...] = static(default=(64, 64))

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        return self.copies * self.horizon

    def init(self, env: Environment, key: Array) -> "State":
        """The network before learning, and environments at the start.

        Raises:
            ValueError: real actions, or minibatches that do not divide the batch.
        """
        if not isinstance(env.action_space, Discrete):
            raise ValueError(
                f"PQN: {type(env).__name__} has real actions; it must have a finite number of "
                "them; learn it by PPO"
            )
        if self.steps_per_update % self.minibatches:
            raise ValueError(
                f"PQN: {self.minibatches} minibatches of {self.copies} copies times "
                f"{self.horizon} steps; choose a divisor of {self.steps_per_update}"
            )
        env_key, network_key = jax.random.split(key)
        vector = vectorize(env, self.copies).start(env_key)
        first = jax.tree.map(lambda x: x[0], vector.observation)
        params = self._network(env).init(network_key, first)
        zero = jnp.zeros((), jnp.float32)
        report = {"episode_return": zero, "episodes": zero, "success": zero}
        state = (params, optimiser.init(params), normaliser.init(first), vector)
        return State(*state, jnp.int32(0), report)

    def update(self, env: Environment, state: "State", key: Array) -> "State":
        """One rollout of `horizon` steps of all copies, then `epochs` passes over it."""
        roll_key, learn_key = jax.random.split(key)
        done = state.update.astype(jnp.float32) / self.updates
        vector, raw, batch, report = self._rollout(env, state, done, roll_key)
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        rate = self.learning_rate * jnp.maximum(1 - done, 0.0)

        def error(params: Any, part: dict[str, Array]) -> Array:
            worth = self._worth(env, params, part["observation"])
            worth = jnp.take_along_axis(worth, part["action"][:, None], 1)[:, 0]
            return 0.5 * jnp.mean((worth - part["target"]) ** 2)

        orders = optimiser.minibatches(
            learn_key, self.steps_per_update, self.epochs, self.minibatches
        )
        start = (state.params, state.memory)
        params, memory = optimiser.passes(error, start, batch, orders, rate, self.max_gradient)
        seen = normaliser.update(state.seen, raw)
        return State(params, memory, seen, vector, state.update + 1, report)

    def policy(self, env: Environment, state: "State") -> Callable[[Any], Array]:
        """The greedy policy."""

        def act(observation: Any) -> Array:
            x = normaliser.apply(state.seen, observation)
            return jnp.argmax(self._worth(env, state.params, x), -1)

        return act

    def _rollout(self, env: Environment, state: "State", done: Array, key: Array) -> Any:
        copies = vectorize(env, self.copies)
        share = jnp.maximum(1 - (1 - self.explore) * done / self.settle, self.explore)

        def move(carry: VectorState, key: Array) -> tuple[VectorState, Any]:
            pick_key, random_key, step_key = jax.random.split(key, 3)
            x = normaliser.apply(state.seen, carry.observation)
            worth = self._worth(env, state.params, x)
            anyhow = jax.random.randint(random_key, (self.copies,), 0, worth.shape[-1])
            stray = jax.random.uniform(pick_key, (self.copies,)) < share
            action = jnp.where(stray, anyhow, jnp.argmax(worth, -1))
            after, out = copies.advance(carry, action, step_key)
            return after, (carry.observation, x, action, jnp.max(worth, -1), out)

        keys = jax.random.split(key, self.horizon)
        vector, (raw, x, action, value, out) = jax.lax.scan(move, state.vector, keys)
        final = self._worth(env, state.params, normaliser.apply(state.seen, out.final)).max(-1)
        ends = (out.terminated, out.truncated)
        gain = advantages(out.reward, value, final, *ends, self.discount, self.trace)
        batch = {"observation": x, "action": action, "target": value + gain}
        return vector, raw, batch, out.report()

    def _network(self, env: Environment) -> MLP:
        space: Any = env.action_space
        return MLP(space.size, self.hidden, activation=nn.relu, level=True)

    def _worth(self, env: Environment, params: Any, x: Any) -> Array:
        """Q of every action, [..., A]."""
        out: Any = self._network(env).apply(params, x)
        return out


@pytree
class State:
    """All of a training: resumed from it, a run goes on to the bit."""

    params: Any
    memory: Any  # of the optimiser
    seen: normaliser.Normaliser
    vector: VectorState
    update: Array  # [] updates done
    report: dict[str, Array]  # means over the episodes that ended in the last rollout
