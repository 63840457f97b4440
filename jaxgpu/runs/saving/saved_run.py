"""Saved runs: read the folder of a run without the script that ran it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxgpu.inputs import arguments, ranges

from ..checkpoint import CheckpointError, sealed_files, tree
from ..checkpoint.folder import find_step, list_newest_first, refuse_renamed, steps_in
from . import catalog, experiment, history, objects
from .catalog import Trusted

_STEP = ranges.Range(least=0, below=10**12, whole=True, one=True, none=True)
_MAX_ATTEMPTS = 20  # attempts: an active run may delete checkpoints while they are read


@dataclass(frozen=True)
class SavedRun:
    """Run as its folder holds it, at its last valid checkpoint or a requested one."""

    step: int  # step of the checkpoint
    spec: Any  # the spec whose method the step is, or its bound arguments by name
    state: Any  # state at that step, NumPy arrays
    history: Any  # up to that step, arrays [1 + step, ...] mapped from files
    values: dict[str, str]  # all values of the experiment, formatted, by name
    changes: list[str]  # changes by `resume=`, with their steps
    machine: dict[str, str]  # versions, device, processor and flags of the last writer
    steps: tuple[int, ...]  # steps with checkpoints, valid or not


def load(folder: str | Path, *, step: int | None = None, trusted: Trusted = ()) -> SavedRun:
    """Load a run from its folder: state, history and spec at the last checkpoint or a given step.

    The run may be active, and the folder may be untrusted: it can provide numbers, arrays,
    containers and, by names from an allowlist, dataclasses of jaxgpu, networks of Flax, states of
    Optax and activation functions. Other dataclasses are returned as `types.SimpleNamespace`, other
    functions as `Missing`. No code runs, and only modules of jaxgpu, `flax.linen` and `optax` are
    imported.

    Args:
        folder: of the run, its `out`.
        step: of the checkpoint, one of those retained by `keep`; by default the last valid one.
        trusted: imported modules of yours (or their names) whose dataclasses and functions are
            restored. Use it only for folders of your own: the author of the folder can choose any
            of their definitions.

    Raises:
        CheckpointError: there is no checkpoint, none of that step, or none is usable.
        ValueError, TypeError: `step` is not a valid integer, or `trusted` names a module that is
            not imported, or is not of modules.

    >>> import tempfile, jax.numpy as jnp
    >>> from functools import partial
    >>> from jaxgpu.runs.loop import run
    >>> grown = lambda rate, x: rate * x
    >>> out = tempfile.mkdtemp()
    >>> end = run(partial(grown, 2.0), jnp.ones(2), 3, measure=jnp.sum, out=out)
    >>> saved = load(out)
    >>> saved.step, saved.state, saved.history.tolist(), saved.spec
    (3, array([8., 8.], dtype=float32), [2.0, 4.0, 8.0, 16.0], {'rate': 2.0})
    >>> given = {"measure": jnp.sum, "out": out, "resume": True, "keep": 5}
    >>> end = run(partial(grown, 2.0), jnp.ones(2), 9, **given)
    >>> early = load(out, step=5)
    >>> early.state, len(early.history), early.steps
    (array([32., 32.], dtype=float32), 6, (5, 9))
    """
    out = arguments.path("load: folder", folder)
    ranges.refuse("load: step", step, _STEP)
    trusted = catalog.check("load", trusted)
    names = list_newest_first(out)
    for _ in range(_MAX_ATTEMPTS):
        try:
            return _load_checkpoint(out, names, step, trusted)
        except CheckpointError:
            before, names = names, list_newest_first(out)
            if names == before:
                raise
    return _load_checkpoint(out, names, step, trusted)


def _load_checkpoint(out: Path, names: list[Path], step: int | None, trusted: Trusted) -> SavedRun:
    """Return the checkpoint of a step, or the first valid one among these paths."""
    if not names:
        below = sorted({str(path.parent) for path in out.glob("**/step-*")})[:3]
        where = f"one of {', '.join(below)}" if below else "the one that out= named"
        raise CheckpointError(f"{out}: holds no checkpoint of a run; give {where}")
    faults = []
    for path in names if step is None else find_step(out, int(step)):
        try:
            return _read_checkpoint(out, path, trusted)
        except CheckpointError as error:
            faults.append(str(error))
    raise CheckpointError("; ".join(faults))


def _read_checkpoint(out: Path, path: Path, trusted: Trusted) -> SavedRun:
    """Return the checkpoint `path` of the run folder `out` after checking it and its history."""
    leaves, meta = tree.read_leaves(path)
    with sealed_files.convert_errors(path):
        refuse_renamed(path, meta)
        at = history.Segment(**meta["history"])
        was = experiment.read(out, meta["experiment"])
        history.verify(out, at)
        return SavedRun(
            step=meta["step"],
            spec=was.spec(trusted),
            state=objects.build(meta["tree"], leaves, trusted),
            history=history.read(out, at.rows, trusted),
            values=was.names(),
            changes=meta["changes"],
            machine=meta["machine"],
            steps=steps_in(out),
        )
