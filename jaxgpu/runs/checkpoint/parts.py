"""Checkpoints of several processes: a folder with a part per process and a manifest.

    step-000000000102/part-00000.npz    sealed: pieces of arrays, and the boxes that they fill
    step-000000000102/part-00001.npz    one per process; each piece is written once in the job
    step-000000000102/manifest.json     the arrays, the checksums of all parts and its own

The manifest is written last, by the first process, under a temporary name, synced and renamed:
without a manifest there is no checkpoint. The folder must be visible to all processes. A reader,
with any number of processes, fills each of its own pieces from the boxes that overlap it.
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
from . import binary, sealed_files, untrusted_data
from .folder import MANIFEST
from .sealed_files import CheckpointError

_FORMAT, _PART = "jaxgpu-checkpoint-of-parts", "jaxgpu-checkpoint-part"

type Box = list[list[int]]  # start and stop on each axis
# by index of an array and path of a part: the pieces there, with their index in the part
type Boxes = defaultdict[int, defaultdict[Path, list[tuple[int, Box]]]]


@dataclass(frozen=True)
class Pieces:
    """Pieces of a pytree that one process writes, copied to the host, and a list of all arrays."""

    leaves: list[list[Any]]  # name, type and shape of every array
    boxes: list[tuple[int, Box]]  # per piece: index of the array, and the box in it
    arrays: list[np.ndarray]  # values of each box


def pieces(tree: Any, group: Group) -> Pieces:
    """Return the pieces of a pytree that this process writes: the first copy of each in the job.

    Arrays that do not span processes are the same in all, and the first one writes them.
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
            found.boxes.append((number, _slices_to_box(at, np.shape(x))))
            found.arrays.append(np.array(data))
    return found


def write(folder: Path, rank: int, mine: Pieces) -> str:
    """Write the part of a process into the folder of a checkpoint; return its checksum."""
    header = sealed_files.stamp(_PART) | {"boxes": mine.boxes}
    return sealed_files.write(folder / _part_name(rank), header, mine.arrays)


def commit(folder: Path, leaves: list[list[Any]], meta: dict[str, Any], seals: list[str]) -> None:
    """Write the manifest, which makes the parts a checkpoint."""
    names = {_part_name(rank) for rank in range(len(seals))}
    for left in [part for part in folder.glob("part-*") if part.name not in names]:
        left.unlink()  # left by a larger job that ended before it wrote a manifest
    manifest = sealed_files.stamp(_FORMAT) | {"leaves": leaves, "meta": meta, "parts": seals}
    with files.replace_file(folder / MANIFEST) as file:
        file.write(json.dumps(manifest | {"digest": _manifest_digest(manifest)}, indent=1))
    files.sync(folder.parent)


def open_parts(folder: Path, group: Group) -> tuple[dict[str, Any], Any]:
    """Return the manifest, and a function that reads the part of an array in a box.

    This process verifies the checksums of its share of the parts.

    Raises:
        CheckpointError: the manifest is missing or altered, or a part is missing, truncated,
            altered or of another checkpoint.
    """
    manifest = _read_manifest(folder / MANIFEST)
    boxes: Boxes = defaultdict(lambda: defaultdict(list))
    for rank, seal in enumerate(manifest["parts"]):
        path = folder / _part_name(rank)
        if rank % len(group.members) == group.rank and sealed_files.seal_of(path) != seal:
            raise CheckpointError(f"{path}: belongs to another checkpoint; use another")
        if not path.is_file():
            raise CheckpointError(f"{path}: no such part; use another checkpoint")
        with sealed_files.open_sealed(path, _PART) as (header, members):
            for i, (number, box) in enumerate(header["boxes"]):
                sizes = [stop - start for start, stop in box]
                _, _, size = binary.layout(manifest["leaves"][number][1], sizes)
                if size > members.size:  # claimed by the header, but not in the file
                    raise CheckpointError(f"{path}: holds fewer values than its boxes; use another")
                boxes[number][path].append((i, box))
    return manifest, partial(_read_box, folder, manifest["leaves"], boxes)


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint; give a file that jaxgpu wrote")
    try:
        manifest = untrusted_data.parse(path.read_text())
        digest = manifest.pop("digest")
    except (ValueError, LookupError, AttributeError, TypeError):
        digest = manifest = None
    if manifest is None or digest != _manifest_digest(manifest):
        raise CheckpointError(f"{path}: damaged or not a jaxgpu checkpoint; use another")
    sealed_files.refuse_foreign(path, manifest, _FORMAT)
    return manifest


def _read_box(
    folder: Path,
    leaves: list[list[Any]],
    boxes: Boxes,
    number: int,
    at: Any,
) -> np.ndarray:
    """Return the part of an array in a box, assembled from all pieces that overlap it."""
    name, kind, shape = leaves[number]
    want = _slices_to_box((slice(None),) * len(shape) if at is ... else at, shape)
    found = [
        (path, i, box, [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(want, box, strict=True)])
        for path, held in boxes[number].items()
        for i, box in held
    ]
    found = [row for row in found if all(start < stop for start, stop in row[-1])]
    filled = sum(_box_volume(shared) for *_, shared in found)
    if filled != _box_volume(want):  # checked before allocating memory for the claimed size
        raise CheckpointError(
            f"{folder}: has {filled} of {_box_volume(want)} values of {name}; use another"
        )
    out = np.zeros([stop - start for start, stop in want], binary.dtype_of(kind))
    for path, pieces in itertools.groupby(found, lambda row: row[0]):
        with sealed_files.open_sealed(path, _PART) as (_, members):
            for _, i, box, shared in pieces:
                piece = binary.from_bytes(members[str(i)], kind, [b - a for a, b in box])
                out[_relative_slices(shared, want)] = piece[_relative_slices(shared, box)]
    return out


def _box_volume(box: Any) -> int:
    return math.prod(stop - start for start, stop in box)


def _relative_slices(inner: Any, outer: Box) -> tuple[slice, ...]:
    """Return the slices of a box in an array that fills the box `outer`."""
    return tuple(slice(a - begin, b - begin) for (a, b), (begin, _) in zip(inner, outer))


def _slices_to_box(at: tuple[slice, ...], shape: Any) -> Box:
    """Return start and stop on each axis, from slices."""
    return [list(s.indices(length)[:2]) for s, length in zip(at, shape)]


def _part_name(rank: int) -> str:
    return f"part-{rank:05d}.npz"


def _manifest_digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
