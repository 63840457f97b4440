"""Names of the checkpoints of a run: a sealed file per step, or a folder of parts with a manifest.

    step-000000000102.npz         one of the newest, deleted when newer ones exist
    step-000000000100-kept.npz    one that is retained

Whether a checkpoint is retained is part of its name: no reader has to open it to know, and a later
run with another rule cannot delete it.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from .sealed_files import CheckpointError

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{12})(-kept)?(\.npz)?")
_MAX_LISTED = 6  # steps that an error message lists if the requested one does not exist


def step_path(directory: Path, step: int, kept: bool = False) -> Path:
    """Return the folder for the parts of a step; a single file has `.npz` appended to this name.

    A retained step stays retained when it is written again.
    """
    plain = directory / f"step-{step:012d}"
    stays = plain.with_name(f"{plain.name}-kept")
    return stays if kept or stays.exists() or file_of(stays).exists() else plain


def file_of(path: Path) -> Path:
    """Return the single file of a checkpoint, from the folder of its parts."""
    return path.with_name(f"{path.name}.npz")


def step_of(path: Path) -> int:
    """Return the step of a checkpoint from its name, or -1 for other names."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def is_kept(path: Path) -> bool:
    """Return True if a checkpoint is retained, by its name."""
    found = _NAME.fullmatch(path.name)
    return found is not None and found[2] is not None


def list_newest_first(directory: Path) -> list[Path]:
    """Return the paths of complete checkpoints, valid or not: files or folders with a manifest."""
    found = [*directory.glob("step-*.npz")]
    found += [manifest.parent for manifest in directory.glob(f"step-*/{MANIFEST}")]
    return sorted((path for path in found if step_of(path) >= 0), key=step_of, reverse=True)


def steps_in(directory: Path) -> tuple[int, ...]:
    """Return the steps that have checkpoints, valid or not, in ascending order."""
    return tuple(sorted({step_of(path) for path in list_newest_first(directory)}))


def find_step(directory: Path, step: int) -> list[Path]:
    """Return the paths of the checkpoint of a step: a file, a folder of parts, or both.

    Raises:
        CheckpointError: there is none; the message lists existing steps.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for step in range(0, 100, 10):
    ...     step_path(folder, step).with_suffix(".npz").touch()
    >>> find_step(folder, 44)
    Traceback (most recent call last):
    jaxgpu.runs.checkpoint.sealed_files.CheckpointError: ...: holds no checkpoint of step 44; the
        nearest
    of 10 are 20, 30, 40, 50, 60, 70
    """
    found = [path for path in list_newest_first(directory) if step_of(path) == step]
    if not found:
        steps = steps_in(directory)
        near = sorted(sorted(steps, key=lambda there: abs(there - step))[:_MAX_LISTED])
        which = f"the nearest of {len(steps)}" if len(steps) > len(near) else "those there"
        said = f"{which} are {', '.join(map(str, near))}" if near else "there is none of any step"
        raise CheckpointError(f"{directory}: holds no checkpoint of step {step}; {said}")
    return found


def refuse_renamed(path: Path, meta: dict[str, Any]) -> None:
    """Raise if the name of a checkpoint has another step than its contents.

    Raises:
        CheckpointError: it was renamed.
    """
    if meta.get("step") != step_of(path):
        raise CheckpointError(f"{path}: holds step {meta.get('step')}; restore its original name")


def drop_older(directory: Path, newest: Path, keep: int) -> None:
    """Delete checkpoints up to `newest`, except the newest `keep` and the retained ones.

    Unfinished folders of earlier steps are deleted too. Later checkpoints, of a run that went back,
    remain until this run passes them. The manifest is deleted first, as a folder without one is not
    a checkpoint.
    """
    last = step_of(newest)
    there = [path for path in list_newest_first(directory) if step_of(path) <= last]
    twice = [path for path in there if step_of(path) == last and is_kept(newest)]
    for old in {*there[keep:], *twice}:
        if not is_kept(old):
            (old / MANIFEST if old.is_dir() else old).unlink(missing_ok=True)
    for folder in directory.glob("step-*"):
        if folder.is_dir() and not (folder / MANIFEST).exists() and -1 < step_of(folder) < last:
            shutil.rmtree(folder, ignore_errors=True)
