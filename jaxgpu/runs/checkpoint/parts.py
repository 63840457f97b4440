"""A checkpoint of several processes: a folder in which each writes what it holds, and a manifest.

    step-000000000102/part-00000.npz    sealed: pieces of arrays, and the boxes that they fill
    step-000000000102/part-00001.npz    one a process; each piece is written once in the whole job
    step-000000000102/manifest.json     the arrays, the seals of all parts, a digest of itself

The manifest is written last, by the first process, under a temporary name, synced and renamed: no
manifest, no checkpoint. The folder must be one that all processes see. Whoever reads, in however
many processes, fills each of its own pieces from the boxes that overlap it.
"""

import hashlib
import itertools
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxgpu.devices.processes import Group, spans

from .. import files
from . import binary, plain, sealed
from .folder import MANIFEST
from .sealed import CheckpointError

_FORMAT, _PART = "jaxgpu-checkpoint-of-parts", "jaxgpu-checkpoint-part"

type Box = list[list[int]]  # from and to on each axis
# by the number of an array and the part: its pieces there, by their number in the part
type Boxes = defaultdict[int, defaultdict[Path, list[tuple[int, Box]]]]


@dataclass(frozen=True)
class Pieces:
    """What one process writes of a pytree, copied to the host, and what all of the pytree is."""

    leaves: list[list[Any]]  # name, kind and shape of every array
    boxes: list[tuple[int, Box]]  # number of the array, and the box of it, of each piece
    arrays: list[np.ndarray]  # their values, one a box


def pieces(tree: Any, group: Group) -> Pieces:
    """The pieces of a pytree that are this process's to write: of each copy in the job, the first.

    What does not span processes is the same in all, and the first writes it.
    """
    found = Pieces([], [], [])
    for number, (name, leaf) in enumerate(binary.named_leaves(tree)):
        x = binary.numbers_of(leaf)
        found.leaves.append([name, binary.kind_of(leaf), list(np.shape(x))])
        if spans(x):
            held = [(s.index, s.data) for s in x.addressable_shards if s.replica_id == 0]
        else:
            held = [((slice(None),) * np.ndim(x), x)] if group.first else []
        for at, data in held:
            found.boxes.append((number, _box(at, np.shape(x))))
            found.arrays.append(np.array(data))
    return found


def write(folder: Path, rank: int, mine: Pieces) -> str:
    """Write the part of a process into the folder of a checkpoint; its seal."""
    header = sealed.stamp(_PART) | {"boxes": mine.boxes}
    return sealed.write(folder / _name(rank), header, mine.arrays)


def commit(folder: Path, leaves: list[list[Any]], meta: dict[str, Any], seals: list[str]) -> None:
    """Name the parts in a manifest: from now on they are a checkpoint."""
    names = {_name(rank) for rank in range(len(seals))}
    for left in [part for part in folder.glob("part-*") if part.name not in names]:
        left.unlink()  # by more processes, which ended before there was a manifest
    manifest = sealed.stamp(_FORMAT) | {"leaves": leaves, "meta": meta, "parts": seals}
    with files.replacing(folder / MANIFEST) as file:
        file.write(json.dumps(manifest | {"digest": _digest(manifest)}, indent=1))
    files.sync(folder.parent)


def opened(folder: Path, group: Group) -> tuple[dict[str, Any], Any]:
    """The manifest, and a function that gives the part of an array which lies in a box.

    This process looks at the seals of its share of the parts.

    Raises:
        CheckpointError: no manifest or one that was altered, a part that is missing, torn, altered
            or of another checkpoint.
    """
    manifest = _manifest(folder / MANIFEST)
    boxes: Boxes = defaultdict(lambda: defaultdict(list))
    for rank, seal in enumerate(manifest["parts"]):
        path = folder / _name(rank)
        if rank % len(group.members) == group.rank and sealed.seal_of(path) != seal:
            raise CheckpointError(f"{path}: of another checkpoint than its manifest; use another")
        if not path.is_file():
            raise CheckpointError(f"{path}: no such part; use another checkpoint")
        with sealed.opened(path, _PART) as (header, members):
            for i, (number, box) in enumerate(header["boxes"]):
                sizes = [stop - start for start, stop in box]
                _, _, size = binary.layout(manifest["leaves"][number][1], sizes)
                if size > members.size:  # claimed, and not there
                    raise CheckpointError(f"{path}: holds less than its boxes; use another")
                boxes[number][path].append((i, box))
    return manifest, partial(_filled, folder, manifest["leaves"], boxes)


def _manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint; give a file that jaxgpu wrote")
    try:
        manifest = plain.parse(path.read_text())
        digest = manifest.pop("digest")
    except (ValueError, LookupError, AttributeError, TypeError):
        digest = manifest = None
    if manifest is None or digest != _digest(manifest):
        raise CheckpointError(f"{path}: torn, altered or not a jaxgpu checkpoint; use another")
    sealed.refuse_foreign(path, manifest, _FORMAT)
    return manifest


def _filled(
    folder: Path,
    leaves: list[list[Any]],
    boxes: Boxes,
    number: int,
    at: Any,
) -> np.ndarray:
    """The part of an array that lies in a box, from all pieces that reach into it."""
    name, kind, shape = leaves[number]
    want = _box((slice(None),) * len(shape) if at is ... else at, shape)
    found = [
        (path, i, box, [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(want, box, strict=True)])
        for path, held in boxes[number].items()
        for i, box in held
    ]
    found = [row for row in found if all(start < stop for start, stop in row[-1])]
    filled = sum(_volume(shared) for *_, shared in found)
    if filled != _volume(want):  # before memory is taken for what a file claims
        raise CheckpointError(
            f"{folder}: has {filled} of {_volume(want)} values of {name}; use another"
        )
    out = np.zeros([stop - start for start, stop in want], binary.dtype_of(kind))
    for path, pieces in itertools.groupby(found, lambda row: row[0]):
        with sealed.opened(path, _PART) as (_, members):
            for _, i, box, shared in pieces:
                piece = binary.from_bytes(members[str(i)], kind, [b - a for a, b in box])
                out[_within(shared, want)] = piece[_within(shared, box)]
    return out


def _volume(box: Any) -> int:
    return math.prod(stop - start for start, stop in box)


def _within(inner: Any, outer: Box) -> tuple[slice, ...]:
    """Where a box lies in an array that fills another one."""
    return tuple(slice(a - begin, b - begin) for (a, b), (begin, _) in zip(inner, outer))


def _box(at: tuple[slice, ...], shape: Any) -> Box:
    """From and to on each axis, of slices."""
    return [list(s.indices(length)[:2]) for s, length in zip(at, shape)]


def _name(rank: int) -> str:
    return f"part-{rank:05d}.npz"


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
