"""Soft actor-critic: learning from all that was experienced, for reward and randomness.

Haarnoja et al. (2018), arXiv:1812.05905: twin critics learn soft values of rows drawn from a replay
buffer, the actor, a normal distribution squashed by tanh, follows the smaller of the two, and the
temperature makes its entropy what is asked for. Departures: observations are normalised; actor,
critics and temperature take one step of Adam together, each down its own loss; a truncated episode
is bootstrapped with the value of its true last observation. As an option a random action of the
first steps is held on, as in `pqn`: steps that cancel do not lead to a reward far off.

An update steps all copies `horizon` times and descends `gradients` times.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, replace
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu import ranges
from jaxgpu.pytree import number, pytree, size

from ..environment import Environment
from ..spaces import Box
from ..vectorize import VectorState, vectorize
from . import normaliser, optimiser, replay
from .networks import MLP, Squashed, stretched
from .training import Rollouts, Training


class Networks(nn.Module):
    """An actor and two critics."""

    actions: int
    hidden: tuple[int, ...]

    def setup(self) -> None:
        """Make all three."""
        twins: Any = nn.vmap(MLP, {"params": 0}, {"params": True}, in_axes=None, axis_size=2)
        self.actor = MLP(2 * self.actions, self.hidden, 0.01, nn.relu)
        self.critics = twins(1, self.hidden, 1.0, nn.relu)

    def __call__(self, x: Array, action: Array) -> tuple[Squashed, Array]:
        """For the start of the parameters."""
        return self.act(x), self.worth(x, action)

    def act(self, x: Array) -> Squashed:
        """The distribution over actions, of observations [..., O]."""
        mean, log_std = jnp.split(self.actor(x), 2, -1)
        return Squashed(mean, jnp.clip(log_std, -10.0, 2.0))

    def worth(self, x: Array, action: Array) -> Array:
        """What both critics say, [2, N], of observations [N, O] and actions [N, A]."""
        return self.critics(jnp.concatenate([x, action], -1))[..., 0]


@pytree
class SAC(Rollouts):
    """What to run; numbers are leaves, to be vmapped over."""

    learning_rate: Array | float = number(default=1e-3, least=0)  # [] at the start
    discount: Array | float = number(default=0.99, least=0, most=1)  # [] gamma
    follow: Array | float = number(
        default=0.005, above=0, most=1
    )  # [] of the critics that the target takes over in a descent
    entropy: Array | float = number(
        default=-1.0, unit="nats"
    )  # [] asked for, nats for each number of an action in -1...1
    temperature: Array | float = number(default=1.0, above=0)  # [] alpha at the start
    wander: Array | float = number(
        default=256.0, least=0, infinite=True
    )  # [] first steps of environments, of random actions
    hold: Array | float = number(
        default=0.0, least=0, most=1
    )  # [] chance of one of these to be held for a further step
    gradients: int = size(default=8, least=1)  # descents in an update
    batch: int = size(default=128, least=1)  # N, rows of a descent
    capacity: int = size(default=100_000, least=1)  # C, rows kept
    _: KW_ONLY
    copies: int = size(default=8, least=1)  # B
    horizon: int = size(default=1, least=1)  # T, steps of each copy between updates

    def init(self, env: Environment, key: Array, updates: Array | int | None = None) -> "State":
        """Networks before learning, an empty buffer, and environments at the start.

        Args:
            env: of all copies.
            key: of everything random in it.
            updates: how many the training will have, the length of its schedules; without it the
                state can be looked at and played, but not updated.

        Raises:
            ValueError: a finite number of actions, or a buffer too small for a rollout.
        """
        if not isinstance(env.action_space, Box):
            raise ValueError(
                f"SAC: {type(env).__name__} has {env.action_space.size} actions; they must be "
                "real; learn it by PQN or PPO"
            )
        ranges.check("learn", self)
        if self.capacity < self.steps_per_update:
            raise ValueError(
                f"SAC: capacity={self.capacity}; an update has {self.steps_per_update} steps; "
                "give room for as many"
            )
        env_key, network_key = jax.random.split(key)
        first, common = self.common(env, env_key, updates)
        action = jnp.zeros(env.action_space.shape)
        network = self._network(env)
        weights: Any = network.init(network_key, first[None], action[None])
        alpha = self.temperature * jnp.ones((), jnp.float32)
        params = {"weights": weights, "log_alpha": jnp.log(alpha)}
        row = {"observation": first, "action": action, "reward": jnp.zeros(())}
        row |= {"after": first, "terminated": jnp.bool_(False)}
        kept = replay.init(row, self.capacity)
        common["report"]["temperature"] = alpha
        memory = optimiser.init(params)
        return State(params=params, memory=memory, **common, target=weights, kept=kept)

    def update(self, env: Environment, state: "State", key: Array) -> "State":
        """`horizon` steps of all copies, then `gradients` descents on rows from the buffer."""
        roll_key, learn_key = jax.random.split(key)
        vector, rows, broken, report = self._rollout(env, state, roll_key)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
        kept = replay.add(state.kept, flat, broken.reshape(-1))
        seen = normaliser.update(state.seen, rows["observation"])
        rate = jnp.where(kept.size > 0, self.learning_rate * self.left(state), 0.0)
        descend = jax.grad(self._loss)

        def learn(carry: Any, key: Array) -> tuple[Any, None]:
            params, target, memory = carry
            draw_key, act_key = jax.random.split(key)
            part = replay.draw(kept, draw_key, self.batch)
            x = [normaliser.apply(seen, part[name]) for name in ("observation", "after")]
            part |= {"observation": x[0], "after": x[1]}
            slope = descend(params, target, env, part, act_key)
            params, memory = optimiser.descend(params, memory, slope, rate, jnp.inf)
            closer = lambda old, new: old + self.follow * (new - old)
            return (params, jax.tree.map(closer, target, params["weights"]), memory), None

        keys = jax.random.split(learn_key, self.gradients)
        start = (state.params, state.target, state.memory)
        (params, target, memory), _ = jax.lax.scan(learn, start, keys)
        report["temperature"] = jnp.exp(params["log_alpha"])
        return replace(
            state,
            params=params,
            memory=memory,
            seen=seen,
            vector=vector,
            update=state.update + 1,
            report=report,
            target=target,
            kept=kept,
        )

    def policy(self, env: Environment, state: "State") -> Callable[[Any], Array]:
        """The learnt policy: observation to action, without noise."""

        def act(observation: Any) -> Array:
            x = normaliser.apply(state.seen, observation)
            return stretched(env.action_space, self._act(env, state.params, x).mode())

        return act

    def _rollout(
        self, env: Environment, state: "State", key: Array
    ) -> tuple[Any, dict, Array, dict]:
        copies = vectorize(env, self.copies)
        begun = (state.update * self.steps_per_update).astype(jnp.float32)

        def move(carry: tuple[VectorState, Array], inputs: Any) -> tuple[Any, Any]:
            (vector, held), (act_key, any_key, supply, i) = carry, inputs
            x = normaliser.apply(state.seen, vector.observation)
            action, _ = self._act(env, state.params, x).draw(act_key)
            anyhow = jax.random.uniform(any_key, action.shape, minval=-1.0)
            on = jax.random.uniform(jax.random.fold_in(any_key, 0), (self.copies, 1)) < self.hold
            anyhow = jnp.where(on & (i > 0), held, anyhow)
            early = begun + (i * self.copies).astype(jnp.float32) < self.wander
            action = jnp.where(early, anyhow, action)
            after, out = copies.follow(vector, stretched(env.action_space, action), supply)
            return (after, action), (vector.observation, action, out)

        inputs = (*self.drawn(copies, state.vector, key, 2), jnp.arange(self.horizon))
        start = state.vector, jnp.zeros((self.copies, *env.action_space.shape))
        (vector, _), (observation, action, out) = jax.lax.scan(move, start, inputs)
        rows = {"observation": observation, "action": action, "reward": out.reward}
        rows |= {"after": out.final, "terminated": out.terminated}
        return vector, rows, out.broken, out.report()

    def _loss(self, params: Any, target: Any, env: Environment, part: Any, key: Array) -> Array:
        """The critics' errors, the actor's loss and the temperature's: apart but for their sum."""
        network, held = self._network(env), jax.lax.stop_gradient(params)
        alpha = jnp.exp(held["log_alpha"])
        now_key, then_key = jax.random.split(key)
        then, likely = self._act(env, held, part["after"]).draw(then_key)
        worth: Any = network.apply(target, part["after"], then, method=Networks.worth)
        soft = jnp.min(worth, 0) - alpha * likely
        goal = part["reward"] + self.discount * jnp.where(part["terminated"], 0.0, soft)
        weights, seen = params["weights"], part["observation"]
        said: Any = network.apply(weights, seen, part["action"], method=Networks.worth)
        error = 0.5 * jnp.sum(jnp.mean((said - goal[None]) ** 2, 1))

        action, likely = self._act(env, params, seen).draw(now_key)
        worth = network.apply(held["weights"], seen, action, method=Networks.worth)
        loss = jnp.mean(alpha * likely - jnp.min(worth, 0))
        asked = self.entropy * action.shape[-1]
        excess = -jax.lax.stop_gradient(jnp.mean(likely)) - asked  # of entropy
        return error + loss + params["log_alpha"] * excess

    def _network(self, env: Environment) -> Networks:
        return Networks(env.action_space.shape[0], self.hidden)

    def _act(self, env: Environment, params: Any, x: Any) -> Squashed:
        out: Any = self._network(env).apply(params["weights"], x, method=Networks.act)
        return out


@pytree
class State(Training):
    """`params` holds the weights of the networks, and the logarithm of the temperature."""

    target: Any  # the slow copy of the weights; its critics alone are used
    kept: replay.Replay
