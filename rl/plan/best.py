"""The best actions seen."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import pytree

type Loss = Callable[[Array], Array]


@pytree
class Best:
    """The best actions seen, and their loss."""

    actions: Array  # [T, A]
    loss: Array  # [] infinite before anything is known
    last: Array  # [] of the newest update; the least of its samples


def nothing(actions: Array) -> Best:
    """Before anything is known; the actions only lend their shape."""
    far = jnp.asarray(jnp.inf, actions.dtype)
    return Best(actions, far, far)


def better(best: Best, actions: Array, loss: Array) -> Best:
    """The better of the two; a loss that is not a number is never better."""
    wins = loss < best.loss
    return Best(jnp.where(wins, actions, best.actions), jnp.where(wins, loss, best.loss), loss)
