"""Temporal expansion: first the beginning of an episode, then more and more of it.

Actions early in an episode move everything after; on all of it at once their gradients are long
products. The loss counts the first `window` frames only, and when a whole round of `patience`
updates has improved it by less than `tolerance` of its size, the window grows by `grow` frames,
as in FluidLab (Xian et al. 2023, arXiv:2303.02346, section 5). With `freeze`, what was planned
before stays as it is.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import number, pytree, static

from .best import Best


@pytree
class Expansion:
    """What to run: a planner, on a window of frames that grows."""

    inner: Any  # a `Descent`, or any other planner
    first: Array | int = number(
        default=10, least=1, whole=True, unit="frames"
    )  # [] frames at the start
    grow: Array | int = number(
        default=10, least=1, whole=True, unit="frames"
    )  # [] frames at a time
    patience: Array | int = number(
        default=3, least=1, whole=True, unit="updates"
    )  # [] updates without an improvement
    tolerance: Array | float = number(
        default=0.01, least=0
    )  # [] least improvement, of the size of the loss
    freeze: bool = static(default=False)  # keep actions before the window's last growth

    def init(self, actions: Array) -> "State":
        """Before the first update, at `actions` [T, A]."""
        inner = self.inner.init(actions)
        window = jnp.minimum(jnp.int32(self.first), actions.shape[0])
        zero = jnp.int32(0)
        return State(inner, window, zero, jnp.asarray(jnp.inf, actions.dtype), zero)

    def update(self, loss: Callable[..., Array], state: "State", key: Array) -> "State":
        """One update of the inner planner on the window; `loss(actions, frames)` is given it."""
        steps = state.inner.actions.shape[0]
        late = (jnp.arange(steps) >= state.frozen)[:, None]

        def part(actions: Array) -> Array:
            still = lax.stop_gradient(actions)
            return loss(jnp.where(late, actions, still) if self.freeze else actions, state.window)

        inner = self.inner.update(part, state.inner, key)
        seen = inner.best.last
        gain = state.least - seen > self.tolerance * jnp.maximum(jnp.abs(seen), 1e-12)
        stale = jnp.where(gain | ~jnp.isfinite(state.least), 0, state.stale + 1)
        ripe = (stale >= self.patience) & (state.window < steps)
        window = jnp.where(ripe, jnp.minimum(state.window + self.grow, steps), state.window)
        far = jnp.asarray(jnp.inf, seen.dtype)
        # losses of different windows do not compare: a new one starts without a best
        best = Best(inner.best.actions, jnp.where(ripe, far, inner.best.loss), seen)
        # a wider window starts from the best plan of the narrower one, wherever the last step led
        actions = jnp.where(ripe, best.actions, inner.actions)
        inner = dataclasses.replace(inner, best=best, actions=actions)
        least = jnp.where(ripe, far, jnp.minimum(state.least, seen))
        frozen = jnp.where(ripe, state.window, state.frozen)
        return State(inner, window, jnp.where(ripe, 0, stale), least, frozen)


@pytree
class State:
    """Where the search is."""

    inner: Any  # state of the planner; its best is of the window it has now
    window: Array  # [] frames that count
    stale: Array  # [] updates since the last improvement
    least: Array  # [] loss on this window
    frozen: Array  # [] frames before which actions stay, with `freeze`

    @property
    def actions(self) -> Array:
        """Where the planner is, [T, A]."""
        return self.inner.actions

    @property
    def best(self) -> Best:
        """The best actions on the window."""
        return self.inner.best

    @property
    def calls(self) -> Array:
        """Losses computed, []; of windows, each counted as one."""
        return self.inner.calls
