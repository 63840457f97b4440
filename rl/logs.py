"""TensorBoard logs of training reports, an optional feature."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np


def to_tensorboard(history: dict[str, Any], folder: str | Path, steps_per_update: int) -> None:
    """Write the reports of a training to `folder`, indexed by environment steps.

    Args:
        history: arrays [1 + updates], as recorded by `train`, or with a trailing axis [S] of seeds,
            as by `sweep`; each seed gets its own subfolder, `0`, `1`, ...
        folder: output folder, created if missing; open it with `tensorboard --logdir`.
        steps_per_update: environment steps per update of the learner.

    Returns and successes are omitted where no episode ended in the update.

    Raises:
        ModuleNotFoundError: if tensorboardX is not installed.
        ValueError: if the arrays differ in shape or have more axes.
    """
    rows = {name: np.asarray(x) for name, x in history.items()}
    shapes = {name: x.shape for name, x in rows.items()}
    if len(set(shapes.values())) != 1 or not 1 <= len(next(iter(shapes.values()))) <= 2:
        raise ValueError(
            f"to_tensorboard: history has the shapes {shapes}; give arrays [updates] or [updates, "
            "seeds], all of one shape"
        )
    try:
        writer = import_module("tensorboardX").SummaryWriter
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'to_tensorboard: tensorboardX is not installed; pip install "jaxgpu[tensorboard]"'
        ) from None
    if next(iter(rows.values())).ndim == 1:
        _write(writer, rows, Path(folder), steps_per_update)
        return
    for seed in range(next(iter(rows.values())).shape[1]):
        part = {name: x[:, seed] for name, x in rows.items()}
        _write(writer, part, Path(folder) / str(seed), steps_per_update)


def _write(writer: Any, rows: dict[str, np.ndarray], folder: Path, every: int) -> None:
    ended = rows.get("episodes", np.ones(1)) > 0
    with writer(str(folder)) as log:
        for name, x in rows.items():
            said = ended if name in ("episode_return", "success") else np.ones_like(ended)
            for i in np.flatnonzero(np.broadcast_to(said, x.shape)):
                log.add_scalar(name, float(x[i]), int(i) * every)
