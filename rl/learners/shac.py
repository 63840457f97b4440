"""Short-horizon actor-critic: learning by the analytic gradient of the simulation.

Xu et al. (2022), arXiv:2204.07137. The actor climbs the derivative of the discounted rewards of a
short window plus the target critic's value of where each path ends; the critic learns TD(lambda)
targets; the target follows the critic slowly. Departures: observations are normalised; as an
option a share of the copies begins anew after each window. Without it, where episodes end by the
clock alone, all copies run in step, and the critic sees what comes after a beginning once in many
windows.
"""

from dataclasses import KW_ONLY, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size

from ..environment import Environment
from ..spaces import Box
from ..vectorize import vectorize
from . import normaliser, optimiser
from .advantage import advantages
from .networks import ActorCritic, Normal, stretched
from .training import Rollouts, Training


@pytree
class SHAC(Rollouts):
    """What to run; numbers are leaves, to be vmapped over."""

    learning_rate: Array | float = number(default=3e-3, least=0)  # [] of the actor, at the start
    critic_rate: Array | float = number(default=2e-3, least=0)  # [] of the critic, at the start
    discount: Array | float = number(default=0.97, least=0, most=1)  # [] gamma
    trace: Array | float = number(default=0.95, least=0, most=1)  # [] lambda
    follow: Array | float = number(
        default=0.2, above=0, most=1
    )  # [] of the critic that the target takes over in an update
    max_gradient: Array | float = number(default=1.0, above=0, infinite=True)  # [] norm
    renew: Array | float = number(
        default=0.0, least=0, most=1
    )  # [] chance of a copy to begin anew after a window
    passes: int = size(default=8, least=1)  # of the critic over a window
    _: KW_ONLY
    horizon: int = size(default=16, least=1)  # H, steps in a window

    def init(self, env: Environment, key: Array, updates: Array | int | None = None) -> "State":
        """Networks before learning, and environments at the start.

        Args:
            env: of all copies.
            key: of everything random in it.
            updates: how many the training will have, the length of its schedules; without it the
                state can be looked at and played, but not updated.

        Raises:
            ValueError: an environment without derivatives.
        """
        if not env.differentiable or not isinstance(env.action_space, Box):
            raise ValueError(
                f"SHAC: {type(env).__name__} is not differentiable; learn it by PPO, or give an "
                "environment with `differentiable` true and real actions"
            )
        env_key, network_key = jax.random.split(key)
        first, common = self.common(env, env_key, updates)
        params = self._network(env).init(network_key, first)
        memory = (optimiser.init(params), optimiser.init(params))
        return State(params=params, memory=memory, **common, target=params)

    def update(self, env: Environment, state: "State", key: Array) -> "State":
        """One window of all copies: a step of the actor, then `passes` of the critic."""
        left = self.left(state)
        climb = jax.grad(self._window, has_aux=True)
        slope, (vector, batch, report) = climb(state.params, env, state, key)
        actor_rate = self.learning_rate * left
        params, actor_memory = optimiser.descend(
            state.params, state.memory[0], slope, actor_rate, self.max_gradient
        )
        network = self._network(env)

        def error(params: Any) -> Array:
            value: Any = network.apply(params, batch["observation"], method=ActorCritic.value)
            return jnp.mean(jnp.where(batch["broken"], 0.0, value - batch["target"]) ** 2)

        def learn(carry: Any, _: None) -> tuple[Any, None]:
            params, memory = carry
            slope, rate = jax.grad(error)(params), self.critic_rate * left
            return optimiser.descend(params, memory, slope, rate, self.max_gradient), None

        start = (params, state.memory[1])
        (params, critic_memory), _ = jax.lax.scan(learn, start, length=self.passes)
        follow = lambda old, new: old + self.follow * (new - old)
        target = jax.tree.map(follow, state.target, params)
        seen = normaliser.update(state.seen, batch["raw"])
        return replace(
            state,
            params=params,
            memory=(actor_memory, critic_memory),
            seen=seen,
            vector=vector,
            update=state.update + 1,
            report=report,
            target=target,
        )

    def policy(self, env: Environment, state: "State") -> Any:
        """The learnt policy: observation to action, without noise."""

        def act(observation: Any) -> Array:
            x = normaliser.apply(state.seen, observation)
            return stretched(env.action_space, jnp.tanh(self._act(env, state.params, x).mode()))

        return act

    def _window(self, params: Any, env: Environment, state: "State", key: Array) -> Any:
        """Minus the mean reward a step of the window, the future beyond it included."""
        copies, network = vectorize(env, self.copies), self._network(env)
        # of a step its derivative computes again what it needs: cheaper than to keep it
        forth = jax.checkpoint(copies.follow, prevent_cse=False)

        def worth(x: Any) -> Array:
            value: Any = network.apply(state.target, x, method=ActorCritic.value)
            return value

        def move(carry: Any, inputs: Any) -> tuple[Any, Any]:
            (vector, weight), (act_key, supply, also) = carry, inputs
            x = normaliser.apply(state.seen, vector.observation)
            choice = self._act(env, params, x).sample(act_key)
            action = _spared(stretched(env.action_space, jnp.tanh(choice)))
            after, out = forth(vector, action, supply, also)
            final = worth(normaliser.apply(state.seen, out.final))
            future = self.discount * jnp.where(out.terminated, 0.0, final)
            gain = weight * (out.reward + jnp.where(out.anew, future, 0.0))
            later = jnp.where(out.anew, 1.0, weight * self.discount)
            row = (vector.observation, x, out, final, gain, weight * future)
            return (after, later), row

        start = (state.vector, jnp.ones(self.copies))
        also = self._renewed(jax.random.fold_in(key, 0))
        inputs = (*self.drawn(copies, state.vector, key, 1), also)
        (vector, _), (raw, x, out, final, gain, beyond) = jax.lax.scan(move, start, inputs)
        ahead = jnp.where(out.anew[-1], 0.0, beyond[-1])  # of the paths still under way
        loss = -jnp.mean(jnp.sum(gain, 0) + ahead) / self.horizon
        value = worth(x)
        ends = (out.terminated, out.truncated)
        target = value + advantages(
            out.reward, value, final, *ends, self.discount, self.trace, out.broken
        )
        batch = {"raw": raw, "observation": x, "target": target, "broken": out.broken}
        return loss, jax.lax.stop_gradient((vector, batch, out.report()))

    def _renewed(self, key: Array) -> Array:
        """Which copies begin anew after which step, [H, B]: a share of them, after the last.

        The critic has valued where their paths broke off.
        """
        share = jax.random.uniform(key, (self.copies,)) < self.renew
        return (jnp.arange(self.horizon) == self.horizon - 1)[:, None] & share[None]

    def _network(self, env: Environment) -> ActorCritic:
        return ActorCritic(env.action_space, self.hidden, log_std=-1.0)

    def _act(self, env: Environment, params: Any, x: Any) -> Normal:
        choice: Any = self._network(env).apply(params, x, method=ActorCritic.act)
        return choice


@jax.custom_vjp
def _spared(action: Array) -> Array:
    """Actions [B, A]; a slope that is not finite ends here, and leaves its copy out of the sum.

    Where a copy breaks the slopes of its steps until then are nan, whatever they are multiplied by.
    """
    return action


def _passed(_: None, slope: Array) -> tuple[Array]:
    good = jnp.all(jnp.isfinite(slope), -1, keepdims=True)
    return (jnp.where(good, slope, 0.0),)


_spared.defvjp(lambda action: (action, None), _passed)


@pytree
class State(Training):
    """`memory` holds those of the actor's optimiser and of the critic's."""

    target: Any  # the slow copy; its critic alone is used
