"""One way to write a file: a reader sees the old content or the new, and never a part of it."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write into, which takes the name `path` when the block ends without an error.

    The content is on the disk before it has the name, so a power cut leaves no empty file. The
    scratch file beside it has a name of its own, so two processes cannot write into one, and it is
    removed if the block fails. Folders that are missing are made.

    Args:
        path: the file.
        mode: how the scratch file is opened: "w" for text, "wb+" for bytes that are read back.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> with replacing(path) as file:
    ...     written = file.write("all of it")
    >>> path.read_text(), len(list(path.parent.iterdir()))
    ('all of it', 1)
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(scratch, mode.replace("w", "x")) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    sync(path.parent)


def sync(directory: Path) -> None:
    """Put the names in a directory on the disk; only POSIX systems let a program ask for it.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a").write_text("kept")
    >>> sync(folder)  # a power cut now leaves the file
    """
    if os.name == "posix":
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
