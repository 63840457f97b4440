"""Many copies of an environment, each beginning anew when its episode ends.

The observation after the end of an episode is the first of the next; the true last one is in
`Outcome.final`, so that a learner can tell what a truncated episode was still worth. Beginnings are
drawn fresh at every step: with `restart="bank"`, an eighth as many as there are copies, which
copies that end in the same step share; with "fresh", one for each copy; "same" begins every
episode as the first one of the copy.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, static
from jaxgpu.rl.environment import Environment

_RESTARTS = ("bank", "fresh", "same")


class Outcome(NamedTuple):
    """What a step of all B copies leads to; leaves [B, ...]."""

    observation: Any  # to act on next
    final: Any  # the observation this step led to, before any new beginning
    reward: Array  # [B], or [B, K]
    terminated: Array  # [B] bool
    truncated: Array  # [B] bool
    info: dict[str, Array]  # of the environment; `episode_return` and `episode_length` so far

    @property
    def over(self) -> Array:
        """Whether the episode ended here, in either way."""
        return self.terminated | self.truncated

    def report(self) -> dict[str, Array]:
        """Of the episodes that ended: their number, and means of their returns and successes."""
        ended = jnp.sum(self.over.astype(jnp.float32))
        single = lambda x: jnp.where(self.over, x.astype(jnp.float32), 0.0)
        mean = lambda x: jnp.sum(single(x)) / jnp.maximum(ended, 1.0)
        total, success = mean(self.info["episode_return"]), mean(self.info["success"])
        return {"episode_return": total, "episodes": ended, "success": success}


@pytree
class VectorState:
    """All copies."""

    state: Any
    observation: Any
    total: Array  # [B] sum of rewards of the running episode; of the first objective
    length: Array  # [B] its steps
    first: Any  # states and observations to begin with, of restart="same"; else empty


@pytree
class Vector:
    """`size` copies of `env`."""

    env: Any  # the environment
    size: int = static()
    restart: str = static(default="bank")

    def start(self, key: Array) -> VectorState:
        """First states of all copies."""
        state, observation = jax.vmap(self.env.start)(jax.random.split(key, self.size))
        first = (state, observation) if self.restart == "same" else ()
        zero = jnp.zeros(self.size)
        return VectorState(state, observation, zero, jnp.zeros(self.size, jnp.int32), first)

    def advance(
        self, state: VectorState, action: Array, key: Array, also: Array | bool = False
    ) -> tuple[VectorState, Outcome]:
        """One step of all copies, and new beginnings; no gradient flows through a beginning.

        Copies that are in `also` [B] begin anew too, their episodes broken off without an end.
        """
        return self.follow(state, action, self.supply(state, key), also)

    def supply(self, state: VectorState, key: Array) -> Any:
        """What a step draws: a key, and states to begin with.

        `advance` draws it itself. Mapped over the keys of many steps before the first of them, the
        same numbers cost fewer and larger operations, and room for an eighth of the copies a step.
        """
        step_key, start_key = jax.random.split(key)
        return step_key, jax.lax.stop_gradient(self._beginnings(state, start_key))

    def follow(
        self, state: VectorState, action: Array, supply: Any, also: Array | bool = False
    ) -> tuple[VectorState, Outcome]:
        """`advance` with what has been drawn."""
        step_key, fresh = supply
        step = jax.vmap(self.env.advance)(
            state.state, action, jax.random.split(step_key, self.size)
        )
        over = step.terminated | step.truncated
        reward = step.reward if step.reward.ndim == 1 else step.reward[:, 0]
        total = state.total + jax.lax.stop_gradient(reward)
        length = state.length + 1
        info = {**step.info, "episode_return": total, "episode_length": length}
        moved = VectorState(step.state, step.observation, total, length, state.first)
        after = self._renewed(moved, over | also, fresh)
        ends = (step.terminated, step.truncated)
        return after, Outcome(after.observation, step.observation, step.reward, *ends, info)

    def _renewed(self, state: VectorState, over: Array, fresh: Any) -> VectorState:
        """The copies begun anew where `over` [B]."""

        def choose(new: Array, old: Array) -> Array:
            new = jnp.concatenate([new] * -(-self.size // new.shape[0]))[: self.size]
            return jnp.where(over.reshape(over.shape + (1,) * (old.ndim - 1)), new, old)

        later, observation = jax.tree.map(choose, fresh, (state.state, state.observation))
        total, length = jnp.where(over, 0.0, state.total), jnp.where(over, 0, state.length)
        return VectorState(later, observation, total, length, state.first)

    def _beginnings(self, state: VectorState, key: Array) -> Any:
        if self.restart == "same":
            return state.first
        count = self.size if self.restart == "fresh" else -(-self.size // 8)
        return jax.vmap(self.env.start)(jax.random.split(key, count))


def vectorize(env: Environment, size: int, restart: str = "bank") -> Vector:
    """`size` copies of `env`.

    Raises:
        ValueError: no copies, or an unknown way to begin anew.
    """
    if size < 1:
        raise ValueError(f"vectorize: size={size}; give at least 1")
    if restart not in _RESTARTS:
        raise ValueError(f"vectorize: restart={restart!r}; use one of {', '.join(_RESTARTS)}")
    return Vector(env, size, restart)
