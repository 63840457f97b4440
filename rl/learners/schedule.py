"""How far a training is along its schedules, whose length is that of the loop that runs it.

The length is a number of the state, put there by `init(env, key, num_updates)`. A checkpoint
carries it, and a training that is resumed goes on along the schedule that it was begun with.
"""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.runs import checkpoint
from jaxgpu.runs.checkpoint.folder import newest_first


def length(name: str, num_updates: Array | int | None) -> Array | None:
    """What a state holds for a training of so many updates, []; None where nobody has said it.

    Raises:
        ValueError: no updates.
        TypeError: not a whole number.
    """
    if num_updates is None:
        return None
    ranges.refuse(f"{name}: num_updates", num_updates, ranges.Range(least=1, whole=True))
    return jnp.asarray(num_updates, jnp.float32)


def progress(name: str, state: Any) -> Array:
    """The share of the schedule that is done, [].

    Raises:
        ValueError: a state that was begun without a length.
    """
    if state.num_updates is None:
        raise ValueError(
            f"{name}: update of a state whose training has no length; begin with "
            "init(env, key, num_updates), or use learn, train or sweep, which know it"
        )
    return state.update.astype(jnp.float32) / state.num_updates


def refuse_another(name: str, out: str | Path | None, updates: int, unit: int) -> None:
    """Raise where the training in `out` was begun with a schedule of another length.

    Args:
        name: of the function that was called.
        out: folder of checkpoints.
        updates: in the schedule now.
        unit: what the caller counts in an update, for the sentence.
    """
    begun = _begun(out)
    if begun is not None and begun != updates:
        raise ValueError(
            f"{name}: {out} was begun with schedule={begun * unit}, now it is {updates * unit}; "
            f"resume with schedule={begun * unit} (beyond its end rates stay as they are there, "
            "a learning rate at zero), or begin anew in another folder"
        )


def _begun(out: str | Path | None) -> int | None:
    """The updates in the schedule of the newest readable checkpoint; None where there is none."""
    for path in newest_first(Path(out)) if out else ():
        try:
            arrays, _ = checkpoint.read(path)
        except checkpoint.CheckpointError:
            continue
        return next((int(a.max()) for at, a in arrays.items() if at.endswith(".num_updates")), None)
    return None
