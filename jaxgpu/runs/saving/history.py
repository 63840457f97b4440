"""History of a run: rows that are only appended, in memory or in the folder of the run.

    history/journal.jsonl   a line that describes the rows, then a line for each segment of them
    history/00000.rows      the rows of the first array, one after the other, as raw bytes
    history/00001.rows      the rows of the second array

A segment holds the rows of one chunk. Its line holds the number of rows up to its end and a
checksum: a SHA-256 of the first line, of that number, and of all rows so far. The checksum does not
depend on how a run is split into chunks, and a checkpoint refers to its history by it. A reader may
follow an active run: rows without a line do not exist yet. Rows with a line are never rewritten.
"""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import jax
import numpy as np

from .. import files
from ..checkpoint import CheckpointError, binary, sealed_files, untrusted_data
from ..checkpoint.untrusted_data import open_file
from . import objects, structure
from .catalog import Trusted

FOLDER, JOURNAL = "history", "journal.jsonl"
FORMAT, VERSION = "jaxgpu-history", 1
_READ_BYTES = 1 << 24  # bytes per read


@dataclass(frozen=True)
class Segment:
    """End of a segment."""

    rows: int  # total number of rows from the start of the run
    seal: str  # checksum of all these rows


class Checksum:
    """Running checksum of all rows so far."""

    def __init__(self, head: str, arrays: int) -> None:
        self._head = head
        self._arrays = [hashlib.sha256() for _ in range(arrays)]

    def add(self, array: int, rows: Any) -> None:
        """Update the checksum with the bytes of rows of an array."""
        self._arrays[array].update(rows)

    def segment_at(self, rows: int) -> Segment:
        """Return the end of a segment that completes the first `rows` rows."""
        digests = [digest.hexdigest() for digest in self._arrays]
        text = "\n".join([self._head, str(rows), *digests])
        return Segment(rows, hashlib.sha256(text.encode()).hexdigest())


class MemoryHistory:
    """Rows in memory; the cost of adding rows does not depend on how many there are.

    Keys are added as the words that represent them, and returned as keys.

    >>> memory = MemoryHistory({"x": jax.ShapeDtypeStruct((2,), "float32")}, most=3)
    >>> memory.add({"x": np.zeros((1, 2))}, 1)
    >>> memory.add({"x": np.ones((2, 2))}, 2)
    >>> memory.tree()["x"][:, 0].tolist()
    [0.0, 1.0, 1.0]
    """

    def __init__(self, row: Any, most: int) -> None:
        self.row, self.most, self.count = row, most, 0
        self._kinds, self._arrays = binary.describe(row)
        self._rows, self._chunk_capacity = self._empty_arrays(1), 1

    def begin(self) -> None:
        """Do nothing: memory needs no preparation, and no closing."""

    close = begin

    def take_pending(self) -> list[Any]:
        """Return no rows: none wait for a checksum."""
        return []

    def add(self, rows: Any, count: int) -> None:
        """Append rows, a tree of arrays [count, ...]."""
        end = self.count + count
        if end > self._chunk_capacity:
            self._chunk_capacity = max(end, min(2 * self.count, self.most))
            larger = self._empty_arrays(self._chunk_capacity)
            for into, values in zip(larger, self._rows):
                into[: self.count] = values[: self.count]
            self._rows = larger
        for into, values in zip(self._rows, jax.tree.leaves(rows)):
            into[self.count : end] = values
        self.count = end

    def tree(self) -> Any:
        """Return the history so far, arrays [rows, ...]."""
        found = [binary.leaf_of(x[: self.count], kind) for x, kind in zip(self._rows, self._kinds)]
        return _unflatten_rows(self.row, found)

    def _empty_arrays(self, count: int) -> list[np.ndarray]:
        return [np.empty((count, *x.shape), x.dtype) for x in self._arrays]


@dataclass
class Journal:
    """Rows in a folder: added by the loop, sealed by the thread that writes the checkpoint.

    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()), {"x": jax.ShapeDtypeStruct((), "float32")})
    >>> journal.begin()
    >>> journal.add({"x": np.arange(3, dtype=np.float32)}, 3)
    >>> journal.seal(journal.take_pending()).rows
    3
    >>> journal.close()
    >>> read(journal.out)["x"].tolist()
    [0.0, 1.0, 2.0]
    """

    out: Path  # folder of the run
    row: Any  # shapes and dtypes of a row
    count: int = 0  # rows so far, including those without a checksum
    _seals: Checksum = Checksum("", 0)
    _waiting: list[tuple[int, list[np.ndarray]]] = field(default_factory=list)  # no checksum yet
    _files: list[Any] = field(default_factory=list)

    def begin(self) -> None:
        """Create the files of a new run; overwrite those that an unsaved run may have left."""
        head = json.dumps(_make_header(self.row))
        self._seals = Checksum(head, len(jax.tree.leaves(self.row)))
        self._open_files()
        with files.replace_file(_journal_path(self.out)) as file:
            file.write(head + "\n")

    def resume(self, at: Segment, seals: Checksum) -> None:
        """Continue after a segment, with the result of `verify`; drop the rows after it."""
        # rows are overwritten in place, as a reader may have mapped the file
        kept = [line for line, segment in _iterate_segments(self.out) if segment.rows <= at.rows]
        with files.replace_file(_journal_path(self.out)) as file:
            file.writelines(
                [json.dumps(_make_header(self.row)) + "\n", *(line + "\n" for line in kept)]
            )
        self._open_files()
        self.count, self._seals = at.rows, seals

    def add(self, rows: Any, count: int) -> None:
        """Append rows, which have no checksum yet."""
        leaves = [np.ascontiguousarray(leaf) for leaf in jax.tree.leaves(rows)]
        for file, leaf in zip(self._files, leaves):
            file.seek(self.count * math.prod(leaf.shape[1:]) * leaf.dtype.itemsize)
            file.write(_as_bytes(leaf))
            file.flush()
        self.count += count
        self._waiting.append((self.count, leaves))

    def take_pending(self) -> list[tuple[int, list[np.ndarray]]]:
        """Return the rows that wait for a checksum, the argument of `seal`."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def seal(self, waiting: list[tuple[int, list[np.ndarray]]]) -> Segment:
        """Sync rows to disk, then the lines that make them part of the history; return the last."""
        for file in self._files:
            os.fsync(file.fileno())
        with open(_journal_path(self.out), "a") as file:
            end = self._seals.segment_at(0)
            for rows, leaves in waiting:
                for i, leaf in enumerate(leaves):
                    self._seals.add(i, _as_bytes(leaf))
                end = self._seals.segment_at(rows)
                file.write(json.dumps({"rows": rows, "seal": end.seal}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return end

    def tree(self) -> Any:
        """Return the history so far, arrays [rows, ...] mapped from the files, and keys."""
        found = [
            (kind, _map_rows(_rows_path(self.out, i), kind, [self.count, *x.shape]))
            for i, (kind, x) in enumerate(zip(*binary.describe(self.row)))
        ]
        return _unflatten_rows(self.row, [binary.leaf_of(array, kind) for kind, array in found])

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _open_files(self) -> None:
        self.close()
        (self.out / FOLDER).mkdir(exist_ok=True)
        count = len(jax.tree.leaves(self.row))
        self._files = [_open_rows(_rows_path(self.out, i)) for i in range(count)]


def verify(out: Path, at: Segment) -> Checksum:
    """Read all rows up to the segment of a checkpoint, and verify their checksum.

    Returns:
        The checksum so far, with which the history can continue.

    Raises:
        CheckpointError: rows or lines are missing or altered.
    """
    file = _journal_path(out)
    with sealed_files.convert_errors(file):
        head = _read_header(file)
        leaves = untrusted_data.parse(head)["leaves"]
        sizes = [binary.layout(kind, shape)[2] for _, kind, shape in leaves]
        seals, end = Checksum(head, len(sizes)), Segment(0, "")
        with contextlib.ExitStack() as opened:
            rows_of = (_rows_path(out, i) for i in range(len(sizes)))
            arrays = [opened.enter_context(open_file(rows, "rb")) for rows in rows_of]
            for _, segment in _iterate_segments(out):
                if end.rows >= at.rows:
                    break
                for i, size in enumerate(sizes):
                    for piece in _read_pieces(arrays[i], (segment.rows - end.rows) * size):
                        seals.add(i, piece)
                end = segment
                if seals.segment_at(end.rows) != end:
                    raise CheckpointError(
                        f"{file.parent}: the first {end.rows} rows do not match their checksum; "
                        "use another folder"
                    )
        if end != at:
            raise CheckpointError(f"{file}: has no line for {at.rows} rows; use another folder")
        return seals


def copy(source: Path, out: Path, at: Segment) -> Checksum:
    """Copy the history of a run up to a segment into another folder, which has none.

    The journal is written last: without it there is no history.

    Returns:
        The checksum of the copy, as returned by `verify`.

    Raises:
        CheckpointError: rows or lines are missing or altered.
    """
    with sealed_files.convert_errors(_journal_path(source)):
        head = _read_header(_journal_path(source))
        leaves = untrusted_data.parse(head)["leaves"]
        _journal_path(out).parent.mkdir(exist_ok=True)
        for i, (_, kind, shape) in enumerate(leaves):
            size = at.rows * binary.layout(kind, shape)[2]
            with (
                open_file(_rows_path(source, i), "rb") as rows,
                _open_rows(_rows_path(out, i)) as file,
            ):
                for piece in _read_pieces(rows, size):
                    file.write(piece)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
        kept = [line for line, segment in _iterate_segments(source) if segment.rows <= at.rows]
        with files.replace_file(_journal_path(out)) as file:
            file.writelines(f"{line}\n" for line in (head, *kept))
    return verify(out, at)


def remove_journal(out: Path) -> None:
    """Remove the journal of a run that has no checkpoint yet."""
    _journal_path(out).unlink(missing_ok=True)


def has_journal(out: Path) -> bool:
    """Return True if the folder of a run has a journal."""
    return _journal_path(out).exists()


def read(out: str | Path, rows: int | None = None, trusted: Trusted = ()) -> Any:
    """Return the history in the folder of a run, which may be active: arrays [rows, ...].

    They are mapped from the files, so they take no memory until they are accessed; keys do.

    Args:
        out: folder of the run.
        rows: number of rows; by default all that have a checksum.
        trusted: modules whose classes are restored, as for `jaxgpu.load`.

    Raises:
        CheckpointError: there is no history, or it has fewer rows.
    """
    file = _journal_path(Path(out))
    with sealed_files.convert_errors(file):
        leaves = [binary.leaf_of(array, kind) for _, kind, array in stored_arrays(out, rows)]
        return objects.build(untrusted_data.parse(_read_header(file))["tree"], leaves, trusted)


def stored_arrays(out: str | Path, rows: int | None = None) -> list[tuple[str, str, np.ndarray]]:
    """Return the name, the type and the array of each part of the history in a folder.

    Keys are returned as arrays of words.

    Raises:
        CheckpointError: there is no history, or it has fewer rows.
    """
    out = Path(out)
    file = _journal_path(out)
    with sealed_files.convert_errors(file):
        head = untrusted_data.parse(_read_header(file))
        if head["format"] != FORMAT or head["version"] != VERSION:
            raise CheckpointError(f"{file}: another version; read it with the jaxgpu that wrote it")
        there = count_rows(out)
        if rows is not None and rows > there:
            raise CheckpointError(f"{file}: has {there} rows, not {rows}; use another folder")
        rows = there if rows is None else rows
        return [
            (str(name), str(kind), _map_rows(_rows_path(out, i), kind, [rows, *shape]))
            for i, (name, kind, shape) in enumerate(head["leaves"])
        ]


def count_rows(out: str | Path) -> int:
    """Return the number of rows with a checksum in the folder of a run.

    Raises:
        CheckpointError: there is no history, or it was altered.
    """
    with sealed_files.convert_errors(_journal_path(Path(out))):
        return max((segment.rows for _, segment in _iterate_segments(Path(out))), default=0)


def _make_header(row: Any) -> dict[str, Any]:
    names = [jax.tree_util.keystr(at) for at, _ in jax.tree.leaves_with_path(row)]
    leaves = [[name, kind, list(x.shape)] for name, kind, x in zip(names, *binary.describe(row))]
    tree = structure.describe_tree(row)
    return {"format": FORMAT, "version": VERSION, "leaves": leaves, "tree": tree}


def _read_header(file: Path) -> str:
    """Return the first line of a journal, which describes the rows."""
    with open_file(file) as lines:
        line = lines.readline()
    if not line:
        raise CheckpointError(f"{file}: does not describe its rows; use another folder")
    return line.rstrip("\n")


def _iterate_segments(out: Path) -> Iterator[tuple[str, Segment]]:
    """Yield the lines of complete segments; an unfinished line does not count yet."""
    with open_file(_journal_path(out)) as lines:
        lines.readline()
        for line in lines:
            if line.endswith("\n"):
                found = untrusted_data.parse(line)
                yield line[:-1], Segment(int(found["rows"]), str(found["seal"]))


def _read_pieces(file: Any, left: int) -> Iterator[bytes]:
    """Yield the next `left` bytes of a file, or all that remain, in pieces."""
    while left > 0 and (piece := file.read(min(left, _READ_BYTES))):
        left -= len(piece)
        yield piece


def _map_rows(file: Path, kind: str, shape: list[int]) -> np.ndarray:
    """Map rows of a file as an array; writing to it does not change the file."""
    dtype, whole, size = binary.layout(kind, shape)
    if not size:  # an empty range cannot be mapped
        return np.zeros(whole, dtype)
    with open_file(file, "rb") as rows:
        if size > os.fstat(rows.fileno()).st_size:
            raise CheckpointError(f"{file}: has fewer than {shape[0]} rows; use another folder")
        return np.asarray(np.memmap(rows, dtype, "c", 0, whole))


def _unflatten_rows(row: Any, leaves: list[np.ndarray]) -> Any:
    return jax.tree.unflatten(jax.tree.structure(row), leaves)


def _journal_path(out: Path) -> Path:
    return out / FOLDER / JOURNAL


def _open_rows(file: Path) -> IO[bytes]:
    """Open a file of rows for overwriting, and create it if it is missing."""
    # an untrusted folder must not redirect writes to another file by a symbolic link
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(file, flags, 0o666), "r+b")


def _rows_path(out: Path, number: int) -> Path:
    return out / FOLDER / f"{number:05d}.rows"


def _as_bytes(leaf: np.ndarray) -> np.ndarray:
    return leaf.reshape(-1).view(np.uint8)
