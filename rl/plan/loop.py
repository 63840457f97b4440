"""Planning in one call."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu import ranges
from jaxgpu.run import Run, run

from ..spaces import real


def plan(
    loss: Callable[..., Array],
    actions: Array,
    planner: Any,
    updates: int,
    *,
    key: Array,
    out: str | Path | None = None,
    resume: bool = False,
) -> Run:
    """Search for actions [T, A] of little loss.

    Args:
        loss: `loss(actions) -> []`; for an `Expansion` also `loss(actions, frames)`, as
            `cost` is.
        actions: where to begin, [T, A].
        planner: `Descent`, `CEM`, `MPPI` or `Expansion`.
        updates: of the planner.
        key: of its random numbers.
        out: folder of checkpoints.
        resume: go on from the last of them, to the same bits as if never stopped.
    Raises:
        ValueError: a number of the planner out of its range, or actions that are none or not
            finite.
        TypeError: actions that are no real numbers.
    Returns:
        a `Run`: the last state (`best.actions`, `best.loss`), the history of `loss`, the one
        of the update, `best` and `calls` [updates], and the timing.

    >>> import jax, jax.numpy as jnp, optax
    >>> from jaxgpu.rl.plan import Descent
    >>> bowl = lambda actions: jnp.sum((actions - 0.5) ** 2)
    >>> done = plan(bowl, jnp.zeros((3, 1)), Descent(optax.sgd(0.4)), 20, key=jax.random.key(0))
    >>> done.state.best.actions.ravel().round(3)
    Array([0.5, 0.5, 0.5], dtype=float32)
    """
    ranges.check("plan", planner)
    actions = jnp.asarray(ranges.numbers("plan: actions", actions, ("T", "A")))
    if actions.size == 0:
        raise ValueError(f"plan: actions has shape {list(actions.shape)}; it must hold some")
    if not jnp.issubdtype(actions.dtype, jnp.floating):
        actions = actions.astype(real())
    ranges.refuse("plan: updates", updates, ranges.Range(least=0, whole=True, one=True))
    measure = lambda s: {"loss": s.best.last, "best": s.best.loss, "calls": s.calls}
    step = lambda state, key: planner.update(loss, state, key)
    done = run(
        step, planner.init(actions), updates, key=key, measure=measure, out=out, resume=resume
    )
    return replace(done, history=jax.tree.map(lambda rows: rows[1:], done.history))
