"""The checkpoints of a run: a sealed file for each step, or a folder of parts with a manifest.

    step-000000000102.npz         one of the newest, until newer ones are there
    step-000000000100-kept.npz    one that stays

Whether a checkpoint stays is a part of its name: no reader opens it to know, and no rule by which
later runs keep theirs can lose it.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from .sealed import CheckpointError

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{12})(-kept)?(\.npz)?")
_NEAREST = 6  # steps that are named where the one that is asked for is not there


def named(directory: Path, step: int, kept: bool = False) -> Path:
    """Return the folder of the parts of a step; the one file of it has `.npz` behind the name.

    A step that is kept stays so when it is written again.
    """
    plain = directory / f"step-{step:012d}"
    stays = plain.with_name(f"{plain.name}-kept")
    return stays if kept or stays.exists() or file_of(stays).exists() else plain


def file_of(path: Path) -> Path:
    """Return the one file of a checkpoint, from the folder of its parts."""
    return path.with_name(f"{path.name}.npz")


def step_of(path: Path) -> int:
    """Return the step of a checkpoint by its name; -1 where it is no name of one."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def is_kept(path: Path) -> bool:
    """Tell whether a checkpoint stays, by its name."""
    found = _NAME.fullmatch(path.name)
    return found is not None and found[2] is not None


def newest_first(directory: Path) -> list[Path]:
    """Return the paths of whole checkpoints, good or not: files, and folders with a manifest."""
    found = [*directory.glob("step-*.npz")]
    found += [manifest.parent for manifest in directory.glob(f"step-*/{MANIFEST}")]
    return sorted((path for path in found if step_of(path) >= 0), key=step_of, reverse=True)


def steps_in(directory: Path) -> tuple[int, ...]:
    """Return the steps of which there are checkpoints, good or not, in rising order."""
    return tuple(sorted({step_of(path) for path in newest_first(directory)}))


def find_step(directory: Path, step: int) -> list[Path]:
    """Return the paths of the checkpoint of a step: a file, or a folder of parts, or both.

    Raises:
        CheckpointError: there is none; with the steps that are there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for step in range(0, 100, 10):
    ...     named(folder, step).with_suffix(".npz").touch()
    >>> find_step(folder, 44)
    Traceback (most recent call last):
    jaxgpu.runs.checkpoint.sealed.CheckpointError: ...: holds no checkpoint of step 44; the nearest
    of 10 are 20, 30, 40, 50, 60, 70
    """
    found = [path for path in newest_first(directory) if step_of(path) == step]
    if not found:
        steps = steps_in(directory)
        near = sorted(sorted(steps, key=lambda there: abs(there - step))[:_NEAREST])
        which = f"the nearest of {len(steps)}" if len(steps) > len(near) else "those there"
        said = f"{which} are {', '.join(map(str, near))}" if near else "there is none of any step"
        raise CheckpointError(f"{directory}: holds no checkpoint of step {step}; {said}")
    return found


def refuse_renamed(path: Path, meta: dict[str, Any]) -> None:
    """Refuse a checkpoint whose name says another step than its contents.

    Raises:
        CheckpointError: it was renamed.
    """
    if meta.get("step") != step_of(path):
        raise CheckpointError(f"{path}: holds step {meta.get('step')}; give it its name again")


def drop_older(directory: Path, newest: Path, keep: int) -> None:
    """Drop all up to `newest` but the newest `keep` checkpoints and those that are kept.

    What was begun before `newest` and not ended goes too. Later ones, of a run that went back, stay
    until it has come so far again. The manifest goes first: a folder that is half gone is no
    checkpoint.
    """
    last = step_of(newest)
    there = [path for path in newest_first(directory) if step_of(path) <= last]
    twice = [path for path in there if step_of(path) == last and is_kept(newest)]
    for old in {*there[keep:], *twice}:
        if not is_kept(old):
            (old / MANIFEST if old.is_dir() else old).unlink(missing_ok=True)
    for folder in directory.glob("step-*"):
        if folder.is_dir() and not (folder / MANIFEST).exists() and -1 < step_of(folder) < last:
            shutil.rmtree(folder, ignore_errors=True)
