"""Checkpoints of a run: one after each chunk; the newest and the retained ones remain."""

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxgpu.devices.processes import ALONE, Group
from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors

from . import folder, parts, sealed_files
from .sealed_files import CheckpointError
from .tree import load_as, save

_STEP = ranges.Range(least=0, below=10**12, whole=True, one=True)  # twelve digits in a name
_NEWEST = 2  # newest checkpoints of a run of several processes
_KEEP = ranges.Range(least=1, whole=True, one=True)


def save_step(
    directory: str | Path,
    step: int,
    tree: Any,
    meta: dict[str, Any],
    keep: int = 2,
    kept: bool = False,
) -> None:
    """Write the checkpoint of `step` into `directory`; delete all but the newest `keep`.

    Args:
        directory: of the run.
        step: of the run.
        tree: pytree of arrays.
        meta: a dictionary that JSON can hold.
        keep: number of the newest that remain.
        kept: True to retain this one, even when newer ones exist.

    Raises:
        ValueError, TypeError: `step` or `keep` is not a valid integer; those of `save`.

    >>> import tempfile
    >>> import numpy as np
    >>> out = Path(tempfile.mkdtemp())
    >>> for step in (10, 20, 30, 40):
    ...     save_step(out, step, {"x": np.arange(step)}, {"by": "an example"}, kept=step == 10)
    >>> sorted(file.name for file in out.iterdir())  # the newest two, and one that is kept
    ['step-000000000010-kept.npz', 'step-000000000030.npz', 'step-000000000040.npz']
    """
    directory = arguments.path("checkpoint.save_step: directory", directory)
    ranges.refuse("checkpoint.save_step: step", step, _STEP)
    ranges.refuse("checkpoint.save_step: keep", keep, _KEEP)
    arguments.flag("checkpoint.save_step: kept", kept)
    step, meta = int(step), sealed_files.jsonable(meta)
    path = folder.step_path(directory, step, kept)
    save(folder.file_of(path), tree, {**meta, "step": step})
    folder.drop_older(directory, path, keep)


@explain_errors
def save_parts(
    directory: Path,
    step: int,
    mine: parts.Pieces,
    meta: dict[str, Any],
    group: Group,
    kept: bool = False,
) -> None:
    """Write the checkpoint of `step`, each process of `group` with its own pieces.

    It returns when the checkpoint is complete, and raises in all processes if one could not write.
    With `kept` the checkpoint is retained, as by `save_step`.

    Raises:
        OSError: one process cannot write its part to disk.

    >>> import jax, tempfile
    >>> out, state = Path(tempfile.mkdtemp()), {"x": jax.numpy.arange(3.0)}
    >>> save_parts(out, 10, parts.pieces(state, ALONE), {}, ALONE)
    >>> load_last(out, lambda meta: state)[0]
    {'x': array([0., 1., 2.], dtype=float32)}
    """
    # decided by one: the file system may show processes different files for a moment
    name = group.broadcast("save", folder.step_path(directory, step, kept).name)
    path, meta = directory / name, {**sealed_files.jsonable(meta), "step": step}
    seals = _write_in_all(group, lambda: parts.write(path, group.rank, mine))

    def commit_parts() -> str:
        if group.first:
            parts.commit(path, mine.leaves, meta, seals)
            folder.drop_older(directory, path, _NEWEST)
        return ""

    _write_in_all(group, commit_parts)


def load_last(
    directory: str | Path,
    template: Callable[[dict[str, Any]], Any],
    group: Group = ALONE,
    step: int | None = None,
) -> tuple[Any, dict[str, Any]] | None:
    """Load the newest valid checkpoint of `directory`; return None if there is none at all.

    `template(meta)` returns the expected structure, which may depend on how far the run was. Each
    checkpoint that is skipped causes a warning. Several processes skip a checkpoint if it is
    invalid for one of them. With `step` only the checkpoint of that step is loaded.

    Raises:
        CheckpointError: checkpoints exist but none is usable, or there is none of that step.

    >>> import tempfile
    >>> import numpy as np
    >>> out = Path(tempfile.mkdtemp())
    >>> load_last(out, lambda meta: {"x": np.zeros(3)}) is None
    True
    >>> save_step(out, 20, {"x": np.arange(3.0)}, {})
    >>> load_last(out, lambda meta: {"x": np.zeros(3)})
    ({'x': array([0., 1., 2.])}, {'step': 20})
    """
    directory = arguments.path("checkpoint.load_last: directory", directory)
    arguments.function("checkpoint.load_last: template", template)
    ranges.refuse("checkpoint.load_last: step", step, dataclasses.replace(_STEP, none=True))
    names, fault = _list_names(directory, step)
    if group.any_process("load", bool(fault)):
        raise CheckpointError(fault or f"{directory}: another process sees different files in it")
    refused = []
    for name in group.broadcast("load", names):
        found, fault = None, ""
        try:
            found = load_as(directory / name, template, group)
            folder.refuse_renamed(directory / name, found[1])
        except CheckpointError as error:
            fault = str(error)
        faults = [text for text in group.exchange("load", fault) if text]
        if faults:
            refused.append(faults[0])
            continue
        for reason in refused if group.first else ():
            warnings.warn(f"{reason}; loading {name} instead", stacklevel=2)
        return found
    if refused:
        raise CheckpointError("; ".join(refused))
    return None


def _list_names(directory: Path, step: int | None) -> tuple[list[str], str]:
    """Return the names of checkpoints to try, and an error message if a step has none."""
    try:
        found = (
            folder.list_newest_first(directory)
            if step is None
            else folder.find_step(directory, step)
        )
    except CheckpointError as error:
        return [], str(error)
    return [path.name for path in found], ""


def holds_any(directory: str | Path) -> bool:
    """Return True if `directory` has a checkpoint, valid or not.

    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp())
    >>> holds_any(out), save_step(out, 1, {"x": 0.0}, {}), holds_any(out)
    (False, None, True)
    """
    directory = arguments.path("checkpoint.holds_any: directory", directory)
    return bool(folder.list_newest_first(directory))


def _write_in_all(group: Group, write: Callable[[], str]) -> list[str]:
    """Call `write` in all processes and return their results; raise if it fails in one."""
    fault: OSError | None = None
    try:
        said = write()
    except OSError as error:
        fault, said = error, f"!{error}"
    found = group.exchange("save", said)
    if fault:
        raise fault
    for number, text in zip(group.members, found):
        if text.startswith("!"):
            raise OSError(f"process {number} could not save: {text[1:]}")
    return found
