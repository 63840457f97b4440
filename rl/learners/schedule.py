"""Schedules of learning rates and exploration; their length is that of the training.

The length is part of the state, set by `init(env, key, num_updates)`. Checkpoints store it, and a
resumed training continues the schedule that it started with.
"""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.runs import checkpoint
from jaxgpu.runs.checkpoint.folder import list_newest_first


def length(name: str, num_updates: Array | int | None) -> Array | None:
    """Return the schedule length [] to store in a state, or None if `num_updates` is None.

    Raises:
        ValueError: if there are no updates.
        TypeError: if it is not an integer.
    """
    if num_updates is None:
        return None
    ranges.refuse(f"{name}: num_updates", num_updates, ranges.Range(least=1, whole=True))
    return jnp.asarray(num_updates, jnp.float32)


def progress(name: str, state: Any) -> Array:
    """Return the completed fraction [] of the schedule in `state`; errors begin with `name`.

    Raises:
        ValueError: if the state was initialized without a length.
    """
    if state.num_updates is None:
        raise ValueError(
            f"{name}: the state has no number of updates; create it by init(env, key, "
            "num_updates), or use learn, train or sweep"
        )
    return state.update.astype(jnp.float32) / state.num_updates


def check_length(name: str, out: str | Path | None, updates: int, unit: int) -> None:
    """Raise if the training in `out` was started with a schedule of another length.

    Args:
        name: name of the called function.
        out: folder of checkpoints.
        updates: length of the schedule of this call, in updates.
        unit: the caller's unit of `schedule` per update, for the message.
    """
    begun = _saved_length(out)
    if begun is not None and begun != updates:
        raise ValueError(
            f"{name}: {out} was started with schedule={begun * unit}, now it is {updates * unit}; "
            f"resume with schedule={begun * unit} (after its end rates stay constant, a learning "
            "rate at zero), or start again in another folder"
        )


def _saved_length(out: str | Path | None) -> int | None:
    """Return the schedule length in the newest readable checkpoint, or None if there is none."""
    for path in list_newest_first(Path(out)) if out else ():
        try:
            arrays, _ = checkpoint.read(path)
        except checkpoint.CheckpointError:
            continue
        return next((int(a.max()) for at, a in arrays.items() if at.endswith(".num_updates")), None)
    return None
