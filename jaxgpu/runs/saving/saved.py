"""What a run has left in its folder, without the script that ran it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxgpu.inputs import arguments, ranges

from ..checkpoint import CheckpointError, sealed, tree
from ..checkpoint.folder import find_step, newest_first, refuse_renamed, steps_in
from . import catalog, experiment, history, objects
from .catalog import Trusted

_STEP = ranges.Range(least=0, below=10**12, whole=True, one=True, none=True)
_TRIES = 20  # of a folder whose checkpoints go while they are read, as their run makes newer ones


@dataclass(frozen=True)
class Saved:
    """A run as its folder holds it, at its last good checkpoint or at one that was asked for."""

    step: int  # of the checkpoint
    spec: Any  # what the step carries: the spec whose method it is, or its arguments by their names
    state: Any  # of that step, NumPy arrays
    history: Any  # up to that step, arrays [1 + step, ...] mapped from files
    values: dict[str, str]  # all that the run is, by name, as a refusal says it
    changes: list[str]  # what was changed in it by `resume=`, and when
    machine: dict[str, str]  # versions, device, processor and flags of the last to write it
    steps: tuple[int, ...]  # of which the folder has checkpoints, good or not


def load(folder: str | Path, *, step: int | None = None, trusted: Trusted = ()) -> Saved:
    """Return the last good checkpoint of a run, or that of a step, with its history and its spec.

    The folder may be read while the run writes it, and it may be a stranger's: it gives numbers,
    arrays, containers, and by their names, from a list, dataclasses of jaxgpu, networks of Flax,
    states of Optax and activation functions. Other dataclasses come back as
    `types.SimpleNamespace`, other functions as `Missing`; no code runs, and nothing is imported but
    modules of jaxgpu, `flax.linen` and `optax`.

    Args:
        folder: of the run, its `out`.
        step: of the checkpoint, one of those that `keep` let stay; the last good one by default.
        trusted: modules of yours (or their names), already imported, whose dataclasses and
            functions come back as themselves. Pass them for folders of your own alone: whoever
            wrote the folder chooses among all that they define.

    Raises:
        CheckpointError: there is no checkpoint, none of that step, or none can be used.
        ValueError, TypeError: a step that is no count, or `trusted` names a module that is not
            imported, or no module.

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
    names = newest_first(out)
    for _ in range(_TRIES):
        try:
            return _load(out, names, step, trusted)
        except CheckpointError:
            before, names = names, newest_first(out)
            if names == before:
                raise
    return _load(out, names, step, trusted)


def _load(out: Path, names: list[Path], step: int | None, trusted: Trusted) -> Saved:
    """Return that of a step, or the first that is good of the checkpoints with these names."""
    if not names:
        below = sorted({str(path.parent) for path in out.glob("**/step-*")})[:3]
        where = f"one of {', '.join(below)}" if below else "the one that out= named"
        raise CheckpointError(f"{out}: holds no checkpoint of a run; give {where}")
    faults = []
    for path in names if step is None else find_step(out, int(step)):
        try:
            return _read(out, path, trusted)
        except CheckpointError as error:
            faults.append(str(error))
    raise CheckpointError("; ".join(faults))


def _read(out: Path, path: Path, trusted: Trusted) -> Saved:
    leaves, meta = tree.leaves(path)
    with sealed.as_written(path):
        refuse_renamed(path, meta)
        at = history.Segment(**meta["history"])
        was = experiment.read(out, meta["experiment"])
        history.verify(out, at)
        return Saved(
            step=meta["step"],
            spec=was.spec(trusted),
            state=objects.build(meta["tree"], leaves, trusted),
            history=history.read(out, at.rows, trusted),
            values=was.names(),
            changes=meta["changes"],
            machine=meta["machine"],
            steps=steps_in(out),
        )
