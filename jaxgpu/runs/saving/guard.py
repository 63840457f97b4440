"""Guard against values that are not finite: checks a run between chunks."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .store import Store

_MAX_NAMED = 3  # arrays that an error message names


@dataclass(frozen=True)
class Guard:
    """Check of the state and the new rows of the history after each chunk.

    The state is checked on its device, by one pass in a separate program, so a guarded run is
    bitwise identical to one without a guard. Rows are checked on the host, where they are.

    >>> guard = Guard(Store(None, None), None)
    >>> guard.check({"x": jnp.ones(3)}, {"energy": np.ones(5)}, 10, 15)
    >>> guard.check({"x": jnp.ones(3)}, {"energy": np.array([1.0, np.inf])}, 10, 12)
    Traceback (most recent call last):
    FloatingPointError: run: history ['energy'] from step 12 on is not finite, in steps 11 to ...
    """

    store: Store  # store of the run
    place: Any  # sharding of results that every process reads; None for a single process

    def check(self, state: Any, rows: Any, begin: int, end: int) -> None:
        """Raise if the state of step `end` or the rows since `begin` are not finite.

        Args:
            state: pytree of arrays.
            rows: the history of steps `begin` + 1 to `end`.
            begin: the step before, whose state was finite; -1 before the first check.
            end: the step of `state`.
        Raises:
            FloatingPointError: a floating-point value is not finite; with its name.
            OSError: the previous checkpoint could not be written.
        """
        finite = jax.jit(_find_finite_leaves, out_shardings=self.place)(state)
        faults = [
            f"state {format_path(at)}" for at, good in jax.tree.leaves_with_path(finite) if not good
        ]
        for at, leaf in jax.tree.leaves_with_path(rows):
            bad = _find_bad_rows(leaf)
            if bad.any():
                faults.append(f"history {format_path(at)} from step {begin + 1 + bad.argmax()} on")
        if faults:
            self.store.wait()
            more = f" and {len(faults) - _MAX_NAMED} more" if len(faults) > _MAX_NAMED else ""
            said = f"{', '.join(faults[:_MAX_NAMED])}{more} {'is' if len(faults) == 1 else 'are'}"
            raise FloatingPointError(f"run: {said} not finite, {self._describe_remedy(begin, end)}")

    def _describe_remedy(self, begin: int, end: int) -> str:
        """Describe when it happened, and from which checkpoint the run can be resumed."""
        out = self.store.out
        if begin < 0 and end == 0:
            return "at the start; give a finite one"
        if begin < 0:
            return f"at step {end} in {out}; remove that checkpoint to resume from the one before"
        when = f"at step {end}" if end == begin + 1 else f"in steps {begin + 1} to {end}"
        finer = "" if end == begin + 1 else "; chunk=1 finds the step"
        if out is None or begin == 0:
            return f"{when}; nothing was saved{finer}"
        return f"{when}; the last good checkpoint is of step {begin} in {out}{finer}"


def format_path(at: tuple[Any, ...]) -> str:
    """Return the key path of a leaf as text for an error message; "all" for the whole tree.

    >>> format_path(jax.tree.leaves_with_path({"x": 0.0})[0][0]), format_path(())
    ("['x']", 'all')
    """
    return jax.tree_util.keystr(at).lstrip(".")[:40] or "all"


def _find_finite_leaves(state: Any) -> Any:
    """Return for each floating-point array if all values are finite, bool []."""
    is_floating = lambda x: jnp.issubdtype(x.dtype, jnp.inexact)
    return jax.tree.map(lambda x: jnp.isfinite(x).all() if is_floating(x) else None, state)


def _find_bad_rows(leaf: Any) -> np.ndarray:
    """Return a mask [rows] of the rows with a value that is not finite."""
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return np.zeros(len(leaf), bool)
    return ~np.isfinite(np.asarray(leaf)).reshape(len(leaf), -1).all(axis=1)
