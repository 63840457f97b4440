"""Proximal policy optimisation, the whole loop one program.

Schulman et al. (2017), arXiv:1707.06347, with the advantages of Schulman et al. (2016),
arXiv:1506.02438. Departures: observations and advantages are normalised, the learning rate falls
linearly to zero, values are not clipped (Andrychowicz et al. 2021, arXiv:2006.05990, find no use in
it). A truncated episode is bootstrapped with the value of its true last observation. As options,
rewards are divided by the running deviation of their discounted sums, and the learning rate is
made to keep the policy's step at a given divergence (Rudin et al. 2022, arXiv:2109.11978; there
after each minibatch, here after each update).

A step of an environment costs about 1 + 3 `epochs` passes through both networks.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size, static

from ..environment import Environment
from ..vectorize import Outcome, VectorState, vectorize
from . import normaliser, optimiser
from .advantage import advantages
from .networks import ActorCritic, Categorical, Normal, feasible, noise
from .training import Rollouts, Training


@pytree
class PPO(Rollouts):
    """What to run; numbers are leaves, to be vmapped over."""

    learning_rate: Array | float = number(default=1e-3, least=0)  # [] at the start
    discount: Array | float = number(default=0.99, least=0, most=1)  # [] gamma
    trace: Array | float = number(default=0.95, least=0, most=1)  # [] lambda
    clip: Array | float = number(default=0.2, above=0)  # [] of the probability ratio
    entropy: Array | float = number(default=0.0, least=0)  # [] weight of the entropy
    value: Array | float = number(default=0.5, least=0)  # [] weight of the value's error
    max_gradient: Array | float = number(default=0.5, above=0, infinite=True)  # [] norm
    divergence: Array | float = number(
        default=0.01, above=0, unit="nats"
    )  # [] nats an update, where `adaptive`
    epochs: int = size(default=4, least=1)
    minibatches: int = size(default=8, least=1)
    level: bool = static(default=False)  # divide rewards by the deviation of their sums
    adaptive: bool = static(default=False)  # the learning rate keeps to `divergence`

    def init(self, env: Environment, key: Array, updates: Array | int | None = None) -> "State":
        """Networks before learning, and environments at the start.

        Args:
            env: of all copies.
            key: of everything random in it.
            updates: how many the training will have, the length of its schedules; without it the
                state can be looked at and played, but not updated.

        Raises:
            ValueError: minibatches that do not divide the batch.
        """
        self.check_minibatches(self.minibatches)
        env_key, network_key = jax.random.split(key)
        first, common = self.common(env, env_key, updates)
        params = self._network(env).init(network_key, first)
        return State(
            params=params,
            memory=optimiser.init(params),
            **common,
            returns=normaliser.no_returns(self.copies),
            pace=jnp.ones((), jnp.float32),
        )

    def update(self, env: Environment, state: "State", key: Array) -> "State":
        """One rollout of `horizon` steps of all copies, then `epochs` passes over it."""
        roll_key, learn_key = jax.random.split(key)
        (vector, returns), batch, report = self._rollout(env, state, roll_key)
        seen = normaliser.update(state.seen, batch["observation"])
        batch = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        batch["observation"] = normaliser.apply(state.seen, batch["observation"])
        rate = self.learning_rate * state.pace * self.left(state)

        network = self._network(env)
        orders = optimiser.minibatches(
            learn_key, self.steps_per_update, self.epochs, self.minibatches
        )
        orders = optimiser.spared(orders, batch["broken"])
        params, memory = optimiser.passes(
            lambda params, part: self._loss(params, network, part),
            (state.params, state.memory),
            batch,
            orders,
            rate,
            self.max_gradient,
        )
        choice = self._apply(network, params, batch["observation"])[0]
        pace = self.kept(state.pace, choice, batch)
        return replace(
            state,
            params=params,
            memory=memory,
            seen=seen,
            vector=vector,
            update=state.update + 1,
            report=report,
            returns=returns,
            pace=pace,
        )

    def policy(self, env: Environment, state: "State") -> Any:
        """The learnt policy: observation to its likeliest action."""

        def act(observation: Any) -> Array:
            x = normaliser.apply(state.seen, observation)
            return feasible(env.action_space, self._act(env, state.params, x).mode())

        return act

    def _rollout(self, env: Environment, state: "State", key: Array) -> tuple[Any, dict, dict]:
        copies = vectorize(env, self.copies)

        def move(carry: VectorState, inputs: tuple[Array, Any]) -> tuple[VectorState, Any]:
            drawn, supply = inputs
            choice = self._act(env, state.params, normaliser.apply(state.seen, carry.observation))
            action = choice.pick(drawn)
            after, out = copies.follow(carry, feasible(env.action_space, action), supply)
            return after, (carry.observation, choice, action, out)

        act_keys, supply = self.drawn(copies, state.vector, key, 1)
        drawn = jax.vmap(lambda key: noise(env.action_space, key, self.copies))(act_keys)
        vector, rows = jax.lax.scan(move, state.vector, (drawn, supply))
        observation, choice, action, out = rows
        likely = choice.log_prob(action)
        value, final = self._values(env, state, observation, vector.observation, out)
        returns, reward = state.returns, out.reward
        if self.level:
            returns, reward = normaliser.scale(returns, reward, out.anew, self.discount)
        gain = advantages(
            *(reward, value, final, out.terminated, out.truncated, self.discount, self.trace),
            out.broken,
        )
        batch = {"observation": observation, "action": action, "likely": likely}
        batch |= {"advantage": gain, "target": gain + value, "broken": out.broken}
        return (vector, returns), batch, out.report()

    def _loss(self, params: Any, network: ActorCritic, part: dict[str, Array]) -> Array:
        return self.surrogate(*self._apply(network, params, part["observation"]), part)

    def surrogate(
        self, choice: Normal | Categorical, value: Array, part: dict[str, Array]
    ) -> Array:
        """The loss of a batch: the bounded objective, the value's error and the entropy."""
        gain = part["advantage"]
        gain = (gain - jnp.mean(gain)) / (jnp.std(gain) + 1e-8)
        ratio = jnp.exp(choice.log_prob(part["action"]) - part["likely"])
        bounded = jnp.clip(ratio, 1 - self.clip, 1 + self.clip)
        climb = jnp.mean(jnp.minimum(ratio * gain, bounded * gain))
        error = jnp.mean((value - part["target"]) ** 2)
        return self.value * error - climb - self.entropy * jnp.mean(choice.entropy())

    def kept(self, pace: Array, choice: Normal | Categorical, batch: dict[str, Array]) -> Array:
        """Slower after a policy's step of more than twice `divergence`, faster below half."""
        if not self.adaptive:
            return pace
        change = choice.log_prob(batch["action"]) - batch["likely"]
        far = jnp.mean(jnp.exp(change) - 1 - change)  # KL(old, new), unbiased, never negative
        factor = jnp.where(far < self.divergence / 2, 1.5, 1.0)
        return jnp.clip(pace * jnp.where(far > 2 * self.divergence, 1 / 1.5, factor), 1e-2, 1e2)

    def _network(self, env: Environment) -> ActorCritic:
        return ActorCritic(env.action_space, self.hidden)

    def _apply(
        self, network: ActorCritic, params: Any, x: Any
    ) -> tuple[Normal | Categorical, Array]:
        out: Any = network.apply(params, x)
        return out

    def _act(self, env: Environment, params: Any, x: Any) -> Normal | Categorical:
        out: Any = self._network(env).apply(params, x, method=ActorCritic.act)
        return out

    def _values(
        self, env: Environment, state: "State", seen: Any, last: Any, out: Outcome
    ) -> tuple[Array, Array]:
        """Of what is acted on, `seen` and then `last`, and of what the steps led to, [T, B]."""
        network = self._network(env)

        def worth(model: tuple[Any, normaliser.Normaliser], x: Any) -> Array:
            scaled = normaliser.apply(model[1], x)
            value: Any = network.apply(model[0], scaled, method=ActorCritic.value)
            return value

        model = (state.params, state.seen)
        join = lambda x, last: jnp.concatenate([x, last[None]])
        value = worth(model, jax.tree.map(join, seen, last))
        cut = out.truncated & ~out.terminated
        return value[:-1], ahead(worth, model, value[1:], out.final, cut)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def ahead(
    worth: Callable[[Any, Any], Array], model: Any, later: Array, final: Any, cut: Array
) -> Array:
    """Values of what the steps led to, [T, B]; of anything where an episode terminated.

    They are `worth(model, final)`, and so are their slopes. But most are those of what is acted on
    next, so that only the others are computed, the first in each copy, then the second ...

    Args:
        worth: values, of the model and of observations [..., B].
        model: what `worth` takes.
        later: values of what is acted on next, [T, B].
        final: observations that the steps led to, [T, B, ...].
        cut: [T, B] bool, where that is not what is acted on next: the episode was truncated.
    """

    def renew(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        value, left = carry
        first = jnp.argmax(left, 0)
        now = left & (jnp.arange(len(left))[:, None] == first[None])
        x = jax.tree.map(lambda x: x[first, jnp.arange(x.shape[1])], final)
        return jnp.where(now, worth(model, x)[None], value), left & ~now

    return jax.lax.while_loop(lambda carry: jnp.any(carry[1]), renew, (later, cut))[0]


@ahead.defjvp
def _slope(worth: Callable[[Any, Any], Array], at: tuple, along: tuple) -> tuple[Array, Array]:
    """By the plain formula, as a loop of unknown length has no slope in reverse."""
    slope = jax.jvp(worth, (at[0], at[2]), (along[0], along[2]))[1]
    return ahead(worth, *at), slope


@pytree
class State(Training):
    """And what rewards and learning rate are scaled by."""

    returns: normaliser.Returns
    pace: Array  # [] factor of the learning rate
