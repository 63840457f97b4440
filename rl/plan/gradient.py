"""Gradient-based planners: descent with any optax optimizer, and growing episode windows.

`Descent` can be Adam, L-BFGS with its line search, gradient clipping, learning rates that decay on
a plateau (`optax.contrib.reduce_on_plateau`), or any chain of optax. After each step the actions
are clipped to their bounds. A step whose loss or gradient is not finite is skipped.

`TemporalExpansion` first plans the start of an episode, then more and more of it. Early actions
affect everything after them, so over a long episode their gradients are long products. The loss
counts only the first `window` frames. When `patience` updates have not improved it by more than
`tolerance` of its size, the window grows by `grow` frames, as in FluidLab (Xian et al. 2023,
arXiv:2303.02346, section 5). With `freeze`, earlier planned actions are fixed.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from jaxgpu.inputs.arguments import format_value
from jaxgpu.inputs.fields import number, pytree, static
from jaxgpu.runs.program import call_checked

from .objective import BestPlan, Loss


@pytree
class DescentState:
    """State of a `Descent`."""

    actions: Array  # [T, A] current iterate
    optimiser: Any  # optimizer state
    best: BestPlan
    evaluations: Array  # [] losses computed, including line searches
    skipped: Array  # [] steps skipped because loss or gradient was not finite


@pytree
class Descent:
    """Planner that follows the gradient of its loss."""

    optimiser: Any = static()  # an `optax.GradientTransformation`
    low: Array | float = number(default=-1.0, infinite=True)  # [] or [A] lower bound
    high: Array | float = number(default=1.0, infinite=True)  # [] or [A] upper bound

    def init(self, actions: Array) -> DescentState:
        """Return the state before the first step, at `actions` [T, A].

        Raises:
            TypeError: if the optimizer is not an optax transformation.
        """
        _check_optimizer(self.optimiser)
        return DescentState(
            actions=actions,
            optimiser=call_checked("Descent: optimiser.init", self.optimiser.init, actions),
            best=BestPlan.empty(actions),
            evaluations=jnp.int32(0),
            skipped=jnp.int32(0),
        )

    def update(self, loss: Loss, state: DescentState, key: Array) -> DescentState:
        """Take one step: evaluate the loss and its gradient, and run a line search, if any."""
        value, gradient = jax.value_and_grad(loss)(state.actions)
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        usable = jnp.where(finite, gradient, 0)
        optimiser = optax.with_extra_args_support(self.optimiser)
        with jax.numpy_dtype_promotion("standard"):  # optax raises floats to integer powers
            change, new = optimiser.update(
                usable, state.optimiser, state.actions, value=value, grad=usable, value_fn=loss
            )
            moved: Any = optax.apply_updates(state.actions, change)
        bounded = jnp.clip(moved, self.low, self.high)
        select = lambda a, b: jax.tree.map(lambda x, y: jnp.where(finite, x, y), a, b)
        searched = jnp.asarray(
            optax.tree_utils.tree_get(new, "num_linesearch_steps", default=0), jnp.int32
        )
        return DescentState(
            actions=select(bounded, state.actions),
            optimiser=select(new, state.optimiser),
            best=state.best.update(state.actions, value),
            evaluations=state.evaluations + 1 + searched,
            skipped=state.skipped + jnp.int32(~finite),
        )


@pytree
class ExpansionState:
    """State of the planner on a growing window."""

    inner: Any  # state of the inner planner; its best is that of the current window
    window: Array  # [] frames that count
    stale: Array  # [] updates since the last improvement
    least: Array  # [] minimum loss on this window
    frozen: Array  # [] frames before which actions are fixed, with `freeze`

    @property
    def actions(self) -> Array:
        """Current actions of the inner planner, [T, A]."""
        return self.inner.actions

    @property
    def best(self) -> BestPlan:
        """The best actions on the window."""
        return self.inner.best

    @property
    def evaluations(self) -> Array:
        """Number of losses computed, []; a window counts as one."""
        return self.inner.evaluations


@pytree
class TemporalExpansion:
    """Planner on a growing window of frames.

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
    first: Array | int = number(default=10, least=1, whole=True, unit="frames")  # [] initial window
    grow: Array | int = number(
        default=10, least=1, whole=True, unit="frames"
    )  # [] growth per expansion
    patience: Array | int = number(
        default=3, least=1, whole=True, unit="updates"
    )  # [] updates without an improvement before the window grows
    tolerance: Array | float = number(
        default=0.01, least=0
    )  # [] minimum improvement, relative to the loss
    freeze: bool = static(default=False)  # fix actions before the last growth of the window

    def init(self, actions: Array) -> ExpansionState:
        """Return the state before the first update, at `actions` [T, A]."""
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
        """Update the inner planner on the window, which is the argument `frames` of `loss`."""
        steps = state.inner.actions.shape[0]
        free = (jnp.arange(steps) >= state.frozen)[:, None]

        def window_loss(actions: Array) -> Array:
            fixed = lax.stop_gradient(actions)
            return loss(jnp.where(free, actions, fixed) if self.freeze else actions, state.window)

        inner = self.inner.update(window_loss, state.inner, key)
        latest = inner.best.latest
        gain = state.least - latest > self.tolerance * jnp.maximum(jnp.abs(latest), 1e-12)
        stale = jnp.where(gain | ~jnp.isfinite(state.least), 0, state.stale + 1)
        grows = (stale >= self.patience) & (state.window < steps)
        window = jnp.where(grows, jnp.minimum(state.window + self.grow, steps), state.window)
        unknown = jnp.asarray(jnp.inf, latest.dtype)
        # Losses of different windows are not comparable, so the best is reset.
        best = BestPlan(inner.best.actions, jnp.where(grows, unknown, inner.best.loss), latest)
        # A wider window starts from the best plan of the previous one, not from the last iterate.
        actions = jnp.where(grows, best.actions, inner.actions)
        return ExpansionState(
            inner=dataclasses.replace(inner, best=best, actions=actions),
            window=window,
            stale=jnp.where(grows, 0, stale),
            least=jnp.where(grows, unknown, jnp.minimum(state.least, latest)),
            frozen=jnp.where(grows, state.window, state.frozen),
        )


def _check_optimizer(optimiser: Any) -> None:
    """Raise unless `optimiser` has `init(params)` and `update(gradients, state, params)`."""
    more = isinstance(optimiser, optax.GradientTransformationExtraArgs)
    given = dict.fromkeys(("value", "grad", "value_fn"), 0) if more else {}
    try:
        inspect.signature(optimiser.init).bind(0)
        inspect.signature(optimiser.update).bind(0, 0, 0, **given)
    except (AttributeError, TypeError):
        raise TypeError(
            f"Descent: optimiser={format_value(optimiser)}; it must be an "
            "optax.GradientTransformation"
        ) from None
