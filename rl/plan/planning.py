"""Planning in one call, from one state."""

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
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.runs import Keep, Resume
from jaxgpu.runs.fresh_calls import call_fresh
from jaxgpu.runs.loop import Run, run

from ..spaces import real
from .objective import Loss


class Planner(Protocol):
    """What every planner has; its state has `actions`, `best` and `evaluations`."""

    def init(self, actions: Array) -> Any:
        """The state before the first update, at `actions` [T, A]."""
        ...

    def update(self, loss: Loss, state: Any, key: Array) -> Any:
        """One update: towards actions of less `loss`."""
        ...


@dataclass(frozen=True, repr=False)
class Plan(Run):
    """What planning found."""

    @property
    def actions(self) -> Array:
        """The best actions, [T, A]."""
        return self.state.best.actions

    @property
    def loss(self) -> Array:
        """Their loss, []."""
        return self.state.best.loss


def progress(state: Any) -> dict[str, Array]:
    """What a history holds by default: the update's loss, the best one, and losses computed."""
    best = state.best
    return {"loss": best.latest, "best": best.loss, "evaluations": state.evaluations}


@explained
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
    """Search for actions [T, A] of little loss.

    Its pure twin, to be mapped over or differentiated, is `jaxgpu.runs.rollout` with the step
    `partial(planner.update, loss)` from `planner.init(actions)`.

    Args:
        loss: `loss(actions) -> []`; for a `TemporalExpansion` also `loss(actions, frames)`. An
            `EpisodeCost`, or another pytree that can be called, uses the program of the last call
            again; a new function is compiled anew.
        actions: where to begin, [T, A].
        planner: `Descent`, `CEM`, `MPPI` or `TemporalExpansion`.
        updates: of the planner.
        key: of its random numbers.
        measure: `measure(state)`, recorded at the start and after each update.
        until: `until(state)` -> [] bool; planning ends where it holds.
        out: folder of checkpoints.
        resume: go on from the last of them, to the same bits as if never stopped:
            True, names of values that may be others, or a `Branch`, as `jaxgpu.runs.run` says.
        keep: checkpoints that stay, counted in updates, as `jaxgpu.runs.run` says.
    Raises:
        ValueError: a number of the planner out of its range, or actions that are none or not
            finite.
        TypeError: actions that are no real numbers.
    Returns:
        a `Plan`: the best `actions` and their `loss`, the last state, the history of `loss`, the
        one of the update, `best` and `evaluations` [1 + updates], and the timing.

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
        raise ValueError(f"plan: actions has shape {list(actions.shape)}; it must hold some")
    if not jnp.issubdtype(actions.dtype, jnp.floating):
        actions = actions.astype(real())
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


@allocation.bounded
@jax.jit
def _init(planner: Planner, actions: Array) -> Any:
    return planner.init(actions)
