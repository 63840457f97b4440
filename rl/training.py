"""What the learners by gradients share: sizes, a beginning, and the state of a training."""

from dataclasses import KW_ONLY
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree, static
from jaxgpu.rl import normaliser
from jaxgpu.rl.environment import Environment
from jaxgpu.rl.vectorize import Vector, VectorState, vectorize


@pytree
class Training:
    """All of a training: resumed from it, a run goes on to the bit."""

    params: Any
    memory: Any  # of the optimiser
    seen: normaliser.Normaliser
    vector: VectorState
    update: Array  # [] updates done
    report: dict[str, Array]  # means over the episodes that ended in the last rollout


@pytree
class Rollouts:
    """Learning from rollouts of B copies over T steps each."""

    _: KW_ONLY
    updates: Array | float = 1e9  # [] after which the learning rate is zero
    copies: int = static(default=64)  # B
    horizon: int = static(default=64)  # T, steps of each copy between updates
    hidden: tuple[int, ...] = static(default=(64, 64))

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        return self.copies * self.horizon

    def begun(self, env: Environment, key: Array) -> tuple[VectorState, Any, dict[str, Array]]:
        """Copies at the start, the first observation, and a report of nothing."""
        vector = vectorize(env, self.copies).start(key)
        zero = jnp.zeros((), jnp.float32)
        report = {"episode_return": zero, "episodes": zero, "success": zero}
        return vector, jax.tree.map(lambda x: x[0], vector.observation), report

    def drawn(self, copies: Vector, vector: VectorState, key: Array, count: int) -> tuple:
        """For each of T steps: `count` keys [T] for the policy, and what the copies draw."""
        each = lambda key: jax.random.split(key, count + 1)
        keys = jax.vmap(each)(jax.random.split(key, self.horizon))
        supply = jax.vmap(lambda key: copies.supply(vector, key))(keys[:, count])
        return *(keys[:, i] for i in range(count)), supply

    def done(self, state: Training) -> Array:
        """The share of the updates that are done."""
        return state.update.astype(jnp.float32) / self.updates

    def left(self, state: Training) -> Array:
        """The share of the learning rate that is left, which falls to zero."""
        return jnp.maximum(1 - self.done(state), 0.0)

    def check_minibatches(self, minibatches: int) -> None:
        """Raise where a batch cannot be cut into as many parts."""
        if self.steps_per_update % minibatches:
            raise ValueError(
                f"{type(self).__name__}: {minibatches} minibatches of {self.copies} copies times "
                f"{self.horizon} steps; choose a divisor of {self.steps_per_update}"
            )
