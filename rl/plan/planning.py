"""The function `plan`: trajectory optimization from one state."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.devices import allocation
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import Run, run

from ..spaces import float_dtype
from .objective import Loss


class Planner(Protocol):
    """Protocol of all planners; their states have `actions`, `best` and `evaluations`."""

    def init(self, actions: Array) -> Any:
        """Return the state before the first update, at `actions` [T, A]."""
        ...

    def update(self, loss: Loss, state: Any, key: Array) -> Any:
        """Return the state after one update towards actions with a smaller `loss`."""
        ...


@dataclass(frozen=True, repr=False)
class Plan(Run):
    """Result of planning."""

    @property
    def actions(self) -> Array:
        """The best actions, [T, A]."""
        return self.state.best.actions

    @property
    def loss(self) -> Array:
        """Loss of the best actions, []."""
        return self.state.best.loss


def progress(state: Any) -> dict[str, Array]:
    """Return the default measurements: latest loss, best loss and number of loss evaluations."""
    best = state.best
    return {"loss": best.latest, "best": best.loss, "evaluations": state.evaluations}


@explain_errors
@on_host
def plan(
    loss: Callable[..., Array],
    actions: Array,
    planner: Planner,
    updates: int,
    *,
    key: Array,
    measure: Callable[[Any], Any] = progress,
    until: Callable[[Any], Array] | None = None,
    out: str | Path | None = None,
    resume: Resume = False,
    keep: Keep = None,
) -> Plan:
    """Optimize actions [T, A] to minimize a loss.

    For `vmap` or derivatives use its pure form, `jaxgpu.runs.rollout` with the step
    `partial(planner.update, loss)` from `planner.init(actions)`.

    Args:
        loss: `loss(actions) -> []`; for a `TemporalExpansion` also `loss(actions, frames)`. An
            `EpisodeCost`, or another callable pytree, reuses the compiled program of the last call;
            a new function is recompiled.
        actions: initial actions, [T, A].
        planner: `Descent`, `CEM`, `MPPI` or `TemporalExpansion`.
        updates: number of updates.
        key: random key of the planner.
        measure: `measure(state)`, recorded at the start and after each update.
        until: `until(state)` -> [] bool; planning stops when it holds.
        out: folder of checkpoints.
        resume: continue from the last checkpoint, with a bitwise identical result: True, names of
            values that may differ, or a `Branch`, see `jaxgpu.runs.run`.
        keep: checkpoints to retain, counted in updates, see `jaxgpu.runs.run`.
    Raises:
        ValueError: if a value of the planner is out of its range, or actions are empty or not
            finite.
        TypeError: if actions are not real numbers.
    Returns:
        A `Plan`: the best `actions` and their `loss`, the last state, the history of the latest
        `loss`, of `best` and `evaluations` [1 + updates], and the timing.

    >>> import optax
    >>> from jaxgpu.rl.plan import Descent
    >>> bowl = lambda actions: jnp.sum((actions - 0.5) ** 2)
    >>> found = plan(bowl, jnp.zeros((3, 1)), Descent(optax.sgd(0.4)), 20, key=jax.random.key(0))
    >>> found.actions.ravel().round(3)
    Array([0.5, 0.5, 0.5], dtype=float32)
    """
    ranges.check("plan", planner)
    actions = jnp.asarray(ranges.numbers("plan: actions", actions, ("T", "A")))
    if actions.size == 0:
        raise ValueError(f"plan: actions has shape {list(actions.shape)}; it must not be empty")
    if not jnp.issubdtype(actions.dtype, jnp.floating):
        actions = actions.astype(float_dtype())
    ranges.refuse("plan: updates", updates, ranges.Range(least=0, whole=True, one=True))
    done = run(
        partial(planner.update, loss),
        call_fresh(_init, planner, actions),
        updates,
        key=key,
        measure=measure,
        until=until,
        out=out,
        resume=resume,
        keep=keep,
    )
    return Plan(done.state, done.history, done.timing)


@allocation.limit_memory
@jax.jit
def _init(planner: Planner, actions: Array) -> Any:
    return planner.init(actions)
