"""Descent along the gradient of a loss in a sequence of actions, by any optimiser of optax.

Adam, L-BFGS with its line search, clipping, and learning rates that fall on a plateau
(`optax.contrib.reduce_on_plateau`) are chains of optax; after each step the actions are moved
to the nearest within their bounds. A step whose loss or gradient is not finite is not taken.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from jaxgpu.pytree import number, pytree, static

from .best import Best, Loss, better, nothing


@pytree
class Descent:
    """What to run."""

    optimiser: Any = static()  # an `optax.GradientTransformation`
    low: Array | float = number(default=-1.0, infinite=True)  # [] or [A] least action
    high: Array | float = number(default=1.0, infinite=True)  # [] or [A] greatest

    def init(self, actions: Array) -> "State":
        """Before the first step, at `actions` [T, A]."""
        zero = jnp.int32(0)
        return State(actions, self.optimiser.init(actions), nothing(actions), zero, zero)

    def update(self, loss: Loss, state: "State", key: Array) -> "State":
        """One step: the loss and its gradient, and those of a line search where there is one."""
        value, slope = jax.value_and_grad(loss)(state.actions)
        good = jnp.isfinite(value) & jnp.all(jnp.isfinite(slope))
        known = jnp.where(good, slope, 0)
        optimiser = optax.with_extra_args_support(self.optimiser)
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to whole-number powers
            change, memory = optimiser.update(
                known, state.memory, state.actions, value=value, grad=known, value_fn=loss
            )
            moved: Any = optax.apply_updates(state.actions, change)
        new = jnp.clip(moved, self.low, self.high)
        take = lambda a, b: jax.tree.map(lambda x, y: jnp.where(good, x, y), a, b)
        searched = jnp.asarray(
            optax.tree_utils.tree_get(memory, "num_linesearch_steps", default=0), jnp.int32
        )
        return State(
            take(new, state.actions),
            take(memory, state.memory),
            better(state.best, state.actions, value),
            state.calls + 1 + searched,
            state.refused + jnp.int32(~good),
        )


@pytree
class State:
    """Where the descent is."""

    actions: Array  # [T, A] where the next gradient is taken
    memory: Any  # of the optimiser
    best: Best
    calls: Array  # [] losses computed, line searches counted in
    refused: Array  # [] steps not taken, for want of a finite gradient
