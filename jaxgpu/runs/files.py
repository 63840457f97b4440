"""One way to write a file: a reader sees the old content or the new, and never a part of it.

And one way to keep a folder for a single writer.
"""

import contextlib
import errno
import os
import platform
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil

from jaxgpu.inputs.doors import explained

try:
    import fcntl  # not on Windows, where two processes may meet in one folder
except ImportError:
    fcntl = None

# device and number of the folders that this thread has locked: who holds one may lock it again
_held = threading.local()


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
    writer = f"{platform.node()}.{os.getpid()}"
    scratch = path.with_name(f".{path.name}.{writer}.{uuid.uuid4().hex}.tmp")
    try:
        with open(scratch, mode.replace("w", "x")) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    sync(path.parent)


@explained
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


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """`folder` for this process and thread alone; the system lets go of it when the process ends.

    Whoever holds it may lock it again. Windows, and file systems without locks, let all in.

    Raises:
        BlockingIOError: another one holds it.
        OSError: there is no such folder.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with locked(folder), locked(folder):
    ...     pass
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = os.fstat(handle)
        name, held = (found.st_dev, found.st_ino), getattr(_held, "names", frozenset())
        if name not in held:
            _lock(fcntl, handle, folder)
        _held.names = held | {name}
        try:
            yield
        finally:
            _held.names = held
    finally:
        os.close(handle)


def _lock(system: Any, handle: int, folder: Path) -> None:
    try:
        system.flock(handle, system.LOCK_EX | system.LOCK_NB)
    except BlockingIOError:
        said = "another process runs in it"
        raise BlockingIOError(errno.EAGAIN, said, str(folder)) from None
    except OSError:  # a file system without locks
        pass


def room(folder: Path, size: int) -> None:
    """Refuse a folder on whose disk fewer than `size` bytes are free.

    Raises:
        OSError: with both figures.

    >>> room(Path("."), 10**18)
    Traceback (most recent call last):
    OSError: .: needs 1000000000.00 GB, and ... GB of its disk are free; make room, or give...
    """
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            f"{folder}: needs {size / 1e9:.2f} GB, and {free / 1e9:.2f} GB of its disk are free; "
            "make room, or give another folder"
        )


@explained
def sweep(folder: Path, pattern: str) -> None:
    """Remove scratch files of writers that were killed, for files whose names match a pattern.

    They are of this machine and of processes that are gone, or of this one: nothing else of it may
    be writing there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> left = folder / f".a.txt.{platform.node()}.{os.getpid()}.{uuid.uuid4().hex}.tmp"
    >>> left.touch()
    >>> sweep(folder, "a.*")
    >>> left.exists()
    False
    """
    alive = set(psutil.pids()) - {os.getpid()}
    for left in folder.glob(f".{pattern}.{platform.node()}.*.*.tmp"):
        writer = left.name.split(".")[-3]
        if writer.isdecimal() and int(writer) not in alive:
            left.unlink(missing_ok=True)
