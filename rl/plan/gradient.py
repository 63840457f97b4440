"""Planning by gradients: descent by any optimiser of optax, and windows of an episode that grow.

`Descent` is Adam, L-BFGS with its line search, clipping, learning rates that fall on a plateau
(`optax.contrib.reduce_on_plateau`), or any chain of optax; after each step the actions are moved
to the nearest within their bounds. A step whose loss or gradient is not finite is not taken.

`TemporalExpansion` plans the beginning of an episode first, then more and more of it. Actions early
in an episode move everything after; on all of it at once their gradients are long products. The
loss counts the first `window` frames only, and when a whole round of `patience` updates has
improved it by less than `tolerance` of its size, the window grows by `grow` frames, as in FluidLab
(Xian et al. 2023, arXiv:2303.02346, section 5). With `freeze`, what was planned before stays as it
is.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from jaxgpu.inputs.arguments import shown
from jaxgpu.inputs.fields import number, pytree, static
from jaxgpu.runs.program import called

from .objective import Best, Loss


@pytree
class DescentState:
    """Where the descent is."""

    actions: Array  # [T, A] where the next gradient is taken
    optimiser: Any  # state of the optimiser
    best: Best
    evaluations: Array  # [] losses computed, those of line searches included
    skipped: Array  # [] steps not taken, for want of a finite gradient


@pytree
class Descent:
    """A planner that follows the gradient of its loss."""

    optimiser: Any = static()  # an `optax.GradientTransformation`
    low: Array | float = number(default=-1.0, infinite=True)  # [] or [A] least action
    high: Array | float = number(default=1.0, infinite=True)  # [] or [A] greatest

    def init(self, actions: Array) -> DescentState:
        """The state before the first step, at `actions` [T, A].

        Raises:
            TypeError: the optimiser is none.
        """
        _refuse_no_optimiser(self.optimiser)
        return DescentState(
            actions=actions,
            optimiser=called("Descent: optimiser.init", self.optimiser.init, actions),
            best=Best.empty(actions),
            evaluations=jnp.int32(0),
            skipped=jnp.int32(0),
        )

    def update(self, loss: Loss, state: DescentState, key: Array) -> DescentState:
        """One step: the loss and its gradient, and those of a line search where there is one."""
        value, gradient = jax.value_and_grad(loss)(state.actions)
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        usable = jnp.where(finite, gradient, 0)
        optimiser = optax.with_extra_args_support(self.optimiser)
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to whole-number powers
            change, new = optimiser.update(
                usable, state.optimiser, state.actions, value=value, grad=usable, value_fn=loss
            )
            moved: Any = optax.apply_updates(state.actions, change)
        bounded = jnp.clip(moved, self.low, self.high)
        take = lambda a, b: jax.tree.map(lambda x, y: jnp.where(finite, x, y), a, b)
        searched = jnp.asarray(
            optax.tree_utils.tree_get(new, "num_linesearch_steps", default=0), jnp.int32
        )
        return DescentState(
            actions=take(bounded, state.actions),
            optimiser=take(new, state.optimiser),
            best=state.best.updated(state.actions, value),
            evaluations=state.evaluations + 1 + searched,
            skipped=state.skipped + jnp.int32(~finite),
        )


@pytree
class ExpansionState:
    """Where the search on a growing window is."""

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
    def evaluations(self) -> Array:
        """Losses computed, []; of windows, each counted as one."""
        return self.inner.evaluations


@pytree
class TemporalExpansion:
    """A planner on a window of frames that grows.

    >>> import optax
    >>> from jaxgpu.rl import plan
    >>> bowl = plan.plan(
    ...     lambda actions, frames=None: jnp.sum((actions - 0.5) ** 2),
    ...     jnp.zeros((4, 1)),
    ...     TemporalExpansion(plan.Descent(optax.sgd(0.4)), first=2, grow=2, patience=1),
    ...     40,
    ...     key=jax.random.key(0),
    ... )
    >>> bowl.actions.shape
    (4, 1)
    """

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

    def init(self, actions: Array) -> ExpansionState:
        """The state before the first update, at `actions` [T, A]."""
        return ExpansionState(
            inner=self.inner.init(actions),
            window=jnp.minimum(jnp.int32(self.first), actions.shape[0]),
            stale=jnp.int32(0),
            least=jnp.asarray(jnp.inf, actions.dtype),
            frozen=jnp.int32(0),
        )

    def update(
        self, loss: Callable[..., Array], state: ExpansionState, key: Array
    ) -> ExpansionState:
        """One update of the inner planner on the window; `loss(actions, frames)` is given it."""
        steps = state.inner.actions.shape[0]
        free = (jnp.arange(steps) >= state.frozen)[:, None]

        def part(actions: Array) -> Array:
            fixed = lax.stop_gradient(actions)
            return loss(jnp.where(free, actions, fixed) if self.freeze else actions, state.window)

        inner = self.inner.update(part, state.inner, key)
        latest = inner.best.latest
        gain = state.least - latest > self.tolerance * jnp.maximum(jnp.abs(latest), 1e-12)
        stale = jnp.where(gain | ~jnp.isfinite(state.least), 0, state.stale + 1)
        grows = (stale >= self.patience) & (state.window < steps)
        window = jnp.where(grows, jnp.minimum(state.window + self.grow, steps), state.window)
        unknown = jnp.asarray(jnp.inf, latest.dtype)
        # losses of different windows do not compare: a new one starts without a best
        best = Best(inner.best.actions, jnp.where(grows, unknown, inner.best.loss), latest)
        # a wider window starts from the best plan of the narrower one, wherever the last step led
        actions = jnp.where(grows, best.actions, inner.actions)
        return ExpansionState(
            inner=dataclasses.replace(inner, best=best, actions=actions),
            window=window,
            stale=jnp.where(grows, 0, stale),
            least=jnp.where(grows, unknown, jnp.minimum(state.least, latest)),
            frozen=jnp.where(grows, state.window, state.frozen),
        )


def _refuse_no_optimiser(optimiser: Any) -> None:
    """Refuse what has no `init` of values and no `update` of gradients, a state and values."""
    more = isinstance(optimiser, optax.GradientTransformationExtraArgs)
    given = dict.fromkeys(("value", "grad", "value_fn"), 0) if more else {}
    try:
        inspect.signature(optimiser.init).bind(0)
        inspect.signature(optimiser.update).bind(0, 0, 0, **given)
    except (AttributeError, TypeError):
        raise TypeError(
            f"Descent: optimiser={shown(optimiser)}; it must be an optax.GradientTransformation"
        ) from None
