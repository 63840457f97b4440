"""The checkpoints of a run: a sealed file for each step, or a folder of parts with a manifest."""

import shutil
from pathlib import Path

MANIFEST = "manifest.json"


def named(directory: Path, step: int) -> Path:
    """The folder of the parts of a step; the one file of it has `.npz` behind the name."""
    return directory / f"step-{step:012d}"


def newest_first(directory: Path) -> list[Path]:
    """What stands for a whole checkpoint, good or not: a file, or a folder with a manifest."""
    found = [*directory.glob("step-*.npz")]
    found += [manifest.parent for manifest in directory.glob(f"step-*/{MANIFEST}")]
    return sorted(found, key=lambda path: path.name.removesuffix(".npz"), reverse=True)


def drop_older(directory: Path, newest: Path, keep: int) -> None:
    """Drop all but the newest `keep` checkpoints, and what was begun before `newest` and not ended.

    The manifest goes first: a folder that is half gone is no checkpoint.
    """
    for old in newest_first(directory)[keep:]:
        (old / MANIFEST if old.is_dir() else old).unlink(missing_ok=True)
    for folder in directory.glob("step-*[0-9]"):
        if folder.is_dir() and not (folder / MANIFEST).exists() and folder.name < newest.name:
            shutil.rmtree(folder, ignore_errors=True)
