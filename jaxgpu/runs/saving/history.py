"""The history of a run: rows that are only ever appended, in memory or in the folder of the run.

    history/journal.jsonl   a line of what the rows are, then a line for each segment of them
    history/00000.rows      the rows of the first array, one after the other, as raw bytes
    history/00001.rows      those of the second

A segment is what one chunk of a run added. Its line holds how many rows there are up to its end,
and a seal: a SHA-256 of the first line, of that number, and of all rows up to there. It is the same
however a run was split into chunks, a checkpoint names its history by one, and a reader may follow
while the run goes on: what has no line yet is not there. Nothing that has a line is written again.
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
from ..checkpoint import CheckpointError, binary, plain, sealed
from ..checkpoint.plain import open_file
from . import objects, structure
from .catalog import Trusted

FOLDER, JOURNAL = "history", "journal.jsonl"
FORMAT, VERSION = "jaxgpu-history", 1
_PIECE = 1 << 24  # bytes that are read at once


@dataclass(frozen=True)
class Segment:
    """Where a segment ends."""

    rows: int  # up to its end, from the start of the run on
    seal: str  # of all of them


class Seals:
    """The seal of all rows so far, which goes on with each row."""

    def __init__(self, head: str, arrays: int) -> None:
        self._head = head
        self._arrays = [hashlib.sha256() for _ in range(arrays)]

    def add(self, array: int, rows: Any) -> None:
        """Count bytes of rows of an array in."""
        self._arrays[array].update(rows)

    def at(self, rows: int) -> Segment:
        """The end of a segment of which these are all rows."""
        digests = [digest.hexdigest() for digest in self._arrays]
        text = "\n".join([self._head, str(rows), *digests])
        return Segment(rows, hashlib.sha256(text.encode()).hexdigest())


class Memory:
    """Rows in memory; adding some costs what they are, however many there are.

    Keys are added as the words that stand for them, and come back as keys.

    >>> memory = Memory({"x": jax.ShapeDtypeStruct((2,), "float32")}, most=3)
    >>> memory.add({"x": np.zeros((1, 2))}, 1)
    >>> memory.add({"x": np.ones((2, 2))}, 2)
    >>> memory.tree()["x"][:, 0].tolist()
    [0.0, 1.0, 1.0]
    """

    def __init__(self, row: Any, most: int) -> None:
        self.row, self.most, self.count = row, most, 0
        self._kinds, self._arrays = binary.describe(row)
        self._rows, self._room = self._empty(1), 1

    def begin(self) -> None:
        """There is nothing to prepare, nor to close."""

    close = begin

    def taken(self) -> list[Any]:
        """Rows that wait for a seal: none."""
        return []

    def add(self, rows: Any, count: int) -> None:
        """Append rows, a tree of arrays [count, ...]."""
        end = self.count + count
        if end > self._room:
            self._room = max(end, min(2 * self.count, self.most))
            larger = self._empty(self._room)
            for into, values in zip(larger, self._rows):
                into[: self.count] = values[: self.count]
            self._rows = larger
        for into, values in zip(self._rows, jax.tree.leaves(rows)):
            into[self.count : end] = values
        self.count = end

    def tree(self) -> Any:
        """The history so far, arrays [rows, ...]."""
        found = [binary.leaf_of(x[: self.count], kind) for x, kind in zip(self._rows, self._kinds)]
        return _tree(self.row, found)

    def _empty(self, count: int) -> list[np.ndarray]:
        return [np.empty((count, *x.shape), x.dtype) for x in self._arrays]


@dataclass
class Journal:
    """Rows in a folder: added by the loop, sealed by the thread that writes the checkpoint.

    >>> import tempfile
    >>> journal = Journal(Path(tempfile.mkdtemp()), {"x": jax.ShapeDtypeStruct((), "float32")})
    >>> journal.begin()
    >>> journal.add({"x": np.arange(3, dtype=np.float32)}, 3)
    >>> journal.seal(journal.taken()).rows
    3
    >>> journal.close()
    >>> read(journal.out)["x"].tolist()
    [0.0, 1.0, 2.0]
    """

    out: Path  # folder of the run
    row: Any  # shapes and dtypes of a row
    count: int = 0  # rows so far, those without a seal among them
    _seals: Seals = Seals("", 0)
    _waiting: list[tuple[int, list[np.ndarray]]] = field(default_factory=list)  # without a seal
    _files: list[Any] = field(default_factory=list)

    def begin(self) -> None:
        """Make the files of a run that starts, over what an unsaved one may have left."""
        head = json.dumps(_head(self.row))
        self._seals = Seals(head, len(jax.tree.leaves(self.row)))
        self._open()
        with files.replacing(_journal(self.out)) as file:
            file.write(head + "\n")

    def resume(self, at: Segment, seals: Seals) -> None:
        """Go on behind a segment, with what `verify` gave: what lies behind it is dropped."""
        # rows stay where they are and are written over, as a reader may have them mapped
        kept = [line for line, segment in _lines(self.out) if segment.rows <= at.rows]
        with files.replacing(_journal(self.out)) as file:
            file.writelines([json.dumps(_head(self.row)) + "\n", *(line + "\n" for line in kept)])
        self._open()
        self.count, self._seals = at.rows, seals

    def add(self, rows: Any, count: int) -> None:
        """Append rows, which have no seal yet."""
        leaves = [np.ascontiguousarray(leaf) for leaf in jax.tree.leaves(rows)]
        for file, leaf in zip(self._files, leaves):
            file.seek(self.count * math.prod(leaf.shape[1:]) * leaf.dtype.itemsize)
            file.write(_bytes(leaf))
            file.flush()
        self.count += count
        self._waiting.append((self.count, leaves))

    def taken(self) -> list[tuple[int, list[np.ndarray]]]:
        """The rows that wait for a seal, which `seal` is to be called with."""
        waiting, self._waiting = self._waiting, []
        return waiting

    def seal(self, waiting: list[tuple[int, list[np.ndarray]]]) -> Segment:
        """Put rows on the disk, and the lines that make them part of the history; the last one."""
        for file in self._files:
            os.fsync(file.fileno())
        with open(_journal(self.out), "a") as file:
            end = self._seals.at(0)
            for rows, leaves in waiting:
                for i, leaf in enumerate(leaves):
                    self._seals.add(i, _bytes(leaf))
                end = self._seals.at(rows)
                file.write(json.dumps({"rows": rows, "seal": end.seal}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return end

    def tree(self) -> Any:
        """The history so far, arrays [rows, ...] that lie in the files, and keys."""
        found = [
            (kind, _mapped(_rows_of(self.out, i), kind, [self.count, *x.shape]))
            for i, (kind, x) in enumerate(zip(*binary.describe(self.row)))
        ]
        return _tree(self.row, [binary.leaf_of(array, kind) for kind, array in found])

    def close(self) -> None:
        for file in self._files:
            file.close()

    def _open(self) -> None:
        self.close()
        (self.out / FOLDER).mkdir(exist_ok=True)
        count = len(jax.tree.leaves(self.row))
        self._files = [_open_rows(_rows_of(self.out, i)) for i in range(count)]


def verify(out: Path, at: Segment) -> Seals:
    """Read all rows up to a segment of a checkpoint, and hold them to its seal.

    Returns:
        The seals so far, with which the history may go on.

    Raises:
        CheckpointError: rows or lines that are missing or were altered.
    """
    file = _journal(out)
    with sealed.as_written(file):
        head = _first(file)
        leaves = plain.parse(head)["leaves"]
        sizes = [binary.layout(kind, shape)[2] for _, kind, shape in leaves]
        seals, end = Seals(head, len(sizes)), Segment(0, "")
        with contextlib.ExitStack() as opened:
            rows_of = (_rows_of(out, i) for i in range(len(sizes)))
            arrays = [opened.enter_context(open_file(rows, "rb")) for rows in rows_of]
            for _, segment in _lines(out):
                if end.rows >= at.rows:
                    break
                for i, size in enumerate(sizes):
                    for piece in _pieces(arrays[i], (segment.rows - end.rows) * size):
                        seals.add(i, piece)
                end = segment
                if seals.at(end.rows) != end:
                    raise CheckpointError(
                        f"{file.parent}: the first {end.rows} rows are not those that were "
                        "sealed; use another folder"
                    )
        if end != at:
            raise CheckpointError(f"{file}: has no line of {at.rows} rows; use another folder")
        return seals


def copy(source: Path, out: Path, at: Segment) -> Seals:
    """Copy the history of a run up to a segment into the folder of another, where there is none.

    The journal comes last: without it there is no history.

    Returns:
        The seals of the copy, as `verify` gives them.

    Raises:
        CheckpointError: rows or lines that are missing or were altered.
    """
    with sealed.as_written(_journal(source)):
        head = _first(_journal(source))
        leaves = plain.parse(head)["leaves"]
        _journal(out).parent.mkdir(exist_ok=True)
        for i, (_, kind, shape) in enumerate(leaves):
            size = at.rows * binary.layout(kind, shape)[2]
            with open_file(_rows_of(source, i), "rb") as rows, _open_rows(_rows_of(out, i)) as file:
                for piece in _pieces(rows, size):
                    file.write(piece)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
        kept = [line for line, segment in _lines(source) if segment.rows <= at.rows]
        with files.replacing(_journal(out)) as file:
            file.writelines(f"{line}\n" for line in (head, *kept))
    return verify(out, at)


def remove_journal(out: Path) -> None:
    """Remove the journal of a run that has no checkpoint yet."""
    _journal(out).unlink(missing_ok=True)


def has_journal(out: Path) -> bool:
    """Tell whether the folder of a run has a journal."""
    return _journal(out).exists()


def read(out: str | Path, rows: int | None = None, trusted: Trusted = ()) -> Any:
    """Return the history in the folder of a run, also of one that goes on: arrays [rows, ...].

    They are mapped from the files, so they cost no memory until they are looked at; keys do.

    Args:
        out: folder of the run.
        rows: how many; all that are sealed, if not said.
        trusted: modules whose classes come back, as of `jaxgpu.load`.

    Raises:
        CheckpointError: there is no history, or not so many rows.
    """
    file = _journal(Path(out))
    with sealed.as_written(file):
        leaves = [binary.leaf_of(array, kind) for _, kind, array in arrays_of(out, rows)]
        return objects.build(plain.parse(_first(file))["tree"], leaves, trusted)


def arrays_of(out: str | Path, rows: int | None = None) -> list[tuple[str, str, np.ndarray]]:
    """Return the name, the kind and the array of each part of the history in a folder.

    The array of keys holds their words.

    Raises:
        CheckpointError: there is no history, or not so many rows.
    """
    out = Path(out)
    file = _journal(out)
    with sealed.as_written(file):
        head = plain.parse(_first(file))
        if head["format"] != FORMAT or head["version"] != VERSION:
            raise CheckpointError(f"{file}: of another version; read it with jaxgpu that wrote it")
        there = count(out)
        if rows is not None and rows > there:
            raise CheckpointError(f"{file}: has {there} rows, not {rows}; use another folder")
        rows = there if rows is None else rows
        return [
            (str(name), str(kind), _mapped(_rows_of(out, i), kind, [rows, *shape]))
            for i, (name, kind, shape) in enumerate(head["leaves"])
        ]


def count(out: str | Path) -> int:
    """Return how many rows in the folder of a run are sealed.

    Raises:
        CheckpointError: there is no history, or one that was altered.
    """
    with sealed.as_written(_journal(Path(out))):
        return max((segment.rows for _, segment in _lines(Path(out))), default=0)


def _head(row: Any) -> dict[str, Any]:
    names = [jax.tree_util.keystr(at) for at, _ in jax.tree.leaves_with_path(row)]
    leaves = [[name, kind, list(x.shape)] for name, kind, x in zip(names, *binary.describe(row))]
    tree = structure.of_tree(row)
    return {"format": FORMAT, "version": VERSION, "leaves": leaves, "tree": tree}


def _first(file: Path) -> str:
    """The first line of a journal, which says what the rows are."""
    with open_file(file) as lines:
        line = lines.readline()
    if not line:
        raise CheckpointError(f"{file}: does not say what its rows are; use another folder")
    return line.rstrip("\n")


def _lines(out: Path) -> Iterator[tuple[str, Segment]]:
    """The lines of whole segments; one that a writer has not ended is not there yet."""
    with open_file(_journal(out)) as lines:
        lines.readline()
        for line in lines:
            if line.endswith("\n"):
                found = plain.parse(line)
                yield line[:-1], Segment(int(found["rows"]), str(found["seal"]))


def _pieces(file: Any, left: int) -> Iterator[bytes]:
    """So many bytes of a file, or all that it has left, a little at a time."""
    while left > 0 and (piece := file.read(min(left, _PIECE))):
        left -= len(piece)
        yield piece


def _mapped(file: Path, kind: str, shape: list[int]) -> np.ndarray:
    """Rows of a file as an array that may be written to, which does not change the file."""
    dtype, whole, size = binary.layout(kind, shape)
    if not size:  # nothing can be mapped
        return np.zeros(whole, dtype)
    with open_file(file, "rb") as rows:
        if size > os.fstat(rows.fileno()).st_size:
            raise CheckpointError(f"{file}: has fewer than {shape[0]} rows; use another folder")
        return np.asarray(np.memmap(rows, dtype, "c", 0, whole))


def _tree(row: Any, leaves: list[np.ndarray]) -> Any:
    return jax.tree.unflatten(jax.tree.structure(row), leaves)


def _journal(out: Path) -> Path:
    return out / FOLDER / JOURNAL


def _open_rows(file: Path) -> IO[bytes]:
    """Open rows to write over, in a file that is made where it is not there."""
    # a folder may come from a stranger: no link in it says which file is written over
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(file, flags, 0o666), "r+b")


def _rows_of(out: Path, number: int) -> Path:
    return out / FOLDER / f"{number:05d}.rows"


def _bytes(leaf: np.ndarray) -> np.ndarray:
    return leaf.reshape(-1).view(np.uint8)
