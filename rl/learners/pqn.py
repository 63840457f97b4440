"""Parallel Q-learning without a replay buffer or a target network.

Gallici et al. (2024), arXiv:2407.04811: many copies explore greedily but for a falling share of
random actions, a network with LayerNorm learns their Q(lambda) returns in a few passes and forgets
them. Departures: observations are normalised, the learning rate falls linearly to zero, and a
truncated episode is bootstrapped with the value of its true last observation. As an option a random
action is held on (Dabney et al. 2021, arXiv:2006.01782; here for a geometric number of steps, no
longer than the rollout or the episode): steps that cancel do not lead to a reward far off.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size

from ..environment import Environment
from ..spaces import Discrete
from ..vectorize import VectorState, vectorize
from . import normaliser, optimiser
from .advantage import advantages
from .networks import MLP
from .training import Rollouts, Training


@pytree
class PQN(Rollouts):
    """What to run; numbers are leaves, to be vmapped over."""

    learning_rate: Array | float = number(default=1e-3, least=0)  # [] at the start
    discount: Array | float = number(default=0.99, least=0, most=1)  # [] gamma
    trace: Array | float = number(default=0.65, least=0, most=1)  # [] lambda
    explore: Array | float = number(
        default=0.05, least=0, most=1
    )  # [] share of random actions in the end
    settle: Array | float = number(
        default=0.5, above=0, most=1
    )  # [] share of the updates in which it falls from 1 to that
    hold: Array | float = number(
        default=0.0, least=0, most=1
    )  # [] chance of a random action to be held for a further step
    max_gradient: Array | float = number(default=10.0, above=0, infinite=True)  # [] norm
    epochs: int = size(default=4, least=1)
    minibatches: int = size(default=8, least=1)
    _: KW_ONLY
    copies: int = size(default=32, least=1)  # B

    def init(self, env: Environment, key: Array, updates: Array | int | None = None) -> Training:
        """The network before learning, and environments at the start.

        Args:
            env: of all copies.
            key: of everything random in it.
            updates: how many the training will have, the length of its schedules; without it the
                state can be looked at and played, but not updated.

        Raises:
            ValueError: real actions, or minibatches that do not divide the batch.
        """
        if not isinstance(env.action_space, Discrete):
            raise ValueError(
                f"PQN: {type(env).__name__} has real actions; it must have a finite number of "
                "them; learn it by PPO"
            )
        self.check_minibatches(self.minibatches)
        env_key, network_key = jax.random.split(key)
        first, common = self.common(env, env_key, updates)
        params = self._network(env).init(network_key, first)
        return Training(params=params, memory=optimiser.init(params), **common)

    def update(self, env: Environment, state: Training, key: Array) -> Training:
        """One rollout of `horizon` steps of all copies, then `epochs` passes over it."""
        roll_key, learn_key = jax.random.split(key)
        vector, raw, batch, report = self._rollout(env, state, roll_key)
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        rate = self.learning_rate * self.left(state)

        def error(params: Any, part: dict[str, Array]) -> Array:
            worth = self._worth(env, params, part["observation"])
            worth = jnp.take_along_axis(worth, part["action"][:, None], 1)[:, 0]
            return 0.5 * jnp.mean((worth - part["target"]) ** 2)

        orders = optimiser.minibatches(
            learn_key, self.steps_per_update, self.epochs, self.minibatches
        )
        orders = optimiser.spared(orders, batch["broken"])
        start = (state.params, state.memory)
        params, memory = optimiser.passes(error, start, batch, orders, rate, self.max_gradient)
        seen = normaliser.update(state.seen, raw)
        return replace(
            state,
            params=params,
            memory=memory,
            seen=seen,
            vector=vector,
            update=state.update + 1,
            report=report,
        )

    def policy(self, env: Environment, state: Training) -> Callable[[Any], Array]:
        """The greedy policy."""

        def act(observation: Any) -> Array:
            x = normaliser.apply(state.seen, observation)
            return jnp.argmax(self._worth(env, state.params, x), -1)

        return act

    def _rollout(self, env: Environment, state: Training, key: Array) -> Any:
        copies = vectorize(env, self.copies)
        settled = self.done(state) / self.settle
        share = jnp.maximum(1 - (1 - self.explore) * settled, self.explore)

        def move(carry: tuple[VectorState, Array, Array], inputs: Any) -> tuple[Any, Any]:
            (vector, strayed, held), (pick_key, random_key, supply) = carry, inputs
            x = normaliser.apply(state.seen, vector.observation)
            worth = self._worth(env, state.params, x)
            anyhow = jax.random.randint(random_key, (self.copies,), 0, worth.shape[-1], jnp.int32)
            hold = jax.random.uniform(jax.random.fold_in(pick_key, 0), (self.copies,)) < self.hold
            hold = strayed & hold
            stray = hold | (jax.random.uniform(pick_key, (self.copies,)) < share)
            anyhow = jnp.where(hold, held, anyhow)
            action = jnp.where(stray, anyhow, jax.lax.argmax(worth, worth.ndim - 1, jnp.int32))
            after, out = copies.follow(vector, action, supply)
            row = (vector.observation, x, action, jnp.max(worth, -1), out)
            return (after, stray & ~out.anew, action), row

        inputs = self.drawn(copies, state.vector, key, 2)
        start = (state.vector, jnp.zeros(self.copies, bool), jnp.zeros(self.copies, jnp.int32))
        (vector, _, _), (raw, x, action, value, out) = jax.lax.scan(move, start, inputs)
        final = self._worth(env, state.params, normaliser.apply(state.seen, out.final)).max(-1)
        ends = (out.terminated, out.truncated)
        gain = advantages(out.reward, value, final, *ends, self.discount, self.trace, out.broken)
        batch = {"observation": x, "action": action, "target": value + gain}
        batch["broken"] = out.broken
        return vector, raw, batch, out.report()

    def _network(self, env: Environment) -> MLP:
        space: Any = env.action_space
        return MLP(space.size, self.hidden, activation=nn.relu, level=True)

    def _worth(self, env: Environment, params: Any, x: Any) -> Array:
        """Q of every action, [..., A]."""
        out: Any = self._network(env).apply(params, x)
        return out
