"""What the learners by gradients share: sizes, a beginning, and the state of a training."""

from dataclasses import KW_ONLY
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu import ranges
from jaxgpu.pytree import pytree, size

from ..doors import check_learner, widths
from ..environment import Environment
from ..vectorize import Vector, VectorState, vectorize
from . import normaliser, schedule


@pytree
class Training:
    """All of a training: resumed from it, a run goes on to the bit."""

    params: Any
    memory: Any  # of the optimiser
    seen: normaliser.Normaliser
    vector: VectorState
    update: Array  # [] updates done
    schedule: Array | None  # [] updates in which rates fall and exploration settles
    report: dict[str, Array]  # means over the episodes that ended in the last rollout


@pytree
class Rollouts:
    """Learning from rollouts of B copies over T steps each."""

    _: KW_ONLY
    copies: int = size(default=64, least=1)  # B
    horizon: int = size(default=64, least=1)  # T, steps of each copy between updates
    hidden: tuple[int, ...] = widths((64, 64))

    @property
    def steps_per_update(self) -> int:
        """Steps of environments in one update."""
        return self.copies * self.horizon

    def begun(self, env: Environment, key: Array) -> tuple[VectorState, Any, dict[str, Array]]:
        """Copies at the start, the first observation, and a report of nothing."""
        check_learner(type(self).__name__, self, env)
        vector = vectorize(env, self.copies).reset(key)
        zero = jnp.zeros((), jnp.float32)
        report = {"episode_return": zero, "episodes": zero, "success": zero, "broken": zero}
        return vector, jax.tree.map(lambda x: x[0], vector.observation), report

    def common(
        self, env: Environment, key: Array, updates: Array | int | None
    ) -> tuple[Any, dict[str, Any]]:
        """The first observation, and what every state begins with, by the names of the fields."""
        vector, first, report = self.begun(env, key)
        return first, {
            "seen": normaliser.init(first),
            "vector": vector,
            "update": jnp.int32(0),
            "schedule": schedule.length(type(self).__name__, updates),
            "report": report,
        }

    def drawn(self, copies: Vector, vector: VectorState, key: Array, count: int) -> tuple:
        """For each of T steps: `count` keys [T] for the policy, and what the copies draw."""
        each = lambda key: jax.random.split(key, count + 1)
        keys = jax.vmap(each)(jax.random.split(key, self.horizon))
        supply = jax.vmap(lambda key: copies.supply(vector, key))(keys[:, count])
        return *(keys[:, i] for i in range(count)), supply

    def done(self, state: Training) -> Array:
        """The share of the schedule that is done."""
        return schedule.done(type(self).__name__, state)

    def left(self, state: Training) -> Array:
        """The share of the learning rate that is left, which falls to zero."""
        return schedule.left(type(self).__name__, state)

    def check_minibatches(self, minibatches: int) -> None:
        """Raise where a batch cannot be cut into as many parts."""
        ranges.check("learn", self)
        if self.steps_per_update % minibatches:
            raise ValueError(
                f"{type(self).__name__}: {minibatches} minibatches of {self.copies} copies times "
                f"{self.horizon} steps; choose a divisor of {self.steps_per_update}"
            )
