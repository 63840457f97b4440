"""Atomic replacement of files: a reader sees either the old content or the new.

Locks of folders, for a single writer, are here too.
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

from jaxgpu.inputs.explanations import explain_errors

try:
    import fcntl  # not on Windows, where two processes may write to one folder
except ImportError:
    fcntl = None

# device and inode of the folders that this thread has locked; it may lock them again
_locked_folders = threading.local()


@contextlib.contextmanager
def replace_file(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a scratch file that is renamed to `path` if the block ends without an error.

    The content is synced to disk before the renaming, so a power cut leaves no empty file. Each
    writer has its own scratch file next to `path`, which is removed if the block fails. Missing
    folders are created.

    Args:
        path: the file.
        mode: how the scratch file is opened: "w" for text, "wb+" for bytes that are read back.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> with replace_file(path) as file:
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


@explain_errors
def sync(directory: Path) -> None:
    """Flush the names in a directory to disk; only POSIX systems support it.

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
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock `folder` for this process and thread; the system unlocks it when the process ends.

    The thread may lock it again. On Windows and on file systems without locks it does nothing.

    Raises:
        BlockingIOError: another process or thread holds the lock.
        OSError: the folder does not exist.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with lock_folder(folder), lock_folder(folder):
    ...     pass
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = os.fstat(handle)
        name, held = (found.st_dev, found.st_ino), getattr(_locked_folders, "names", frozenset())
        if name not in held:
            _try_lock(fcntl, handle, folder)
        _locked_folders.names = held | {name}
        try:
            yield
        finally:
            _locked_folders.names = held
    finally:
        os.close(handle)


def _try_lock(system: Any, handle: int, folder: Path) -> None:
    try:
        system.flock(handle, system.LOCK_EX | system.LOCK_NB)
    except BlockingIOError:
        said = "another process uses it"
        raise BlockingIOError(errno.EAGAIN, said, str(folder)) from None
    except OSError:  # a file system without locks
        pass


def check_space(folder: Path, size: int) -> None:
    """Raise if fewer than `size` bytes are free on the disk of a folder.

    Raises:
        OSError: with both sizes.

    >>> check_space(Path("."), 10**18)
    Traceback (most recent call last):
    OSError: .: needs 1000000000.00 GB, and ... GB of its disk are free; free disk space, or...
    """
    free = shutil.disk_usage(folder).free
    if size > free:
        raise OSError(
            f"{folder}: needs {size / 1e9:.2f} GB, and {free / 1e9:.2f} GB of its disk are free; "
            "free disk space, or give another folder"
        )


@explain_errors
def remove_scratch(folder: Path, pattern: str) -> None:
    """Remove scratch files of killed writers, for files whose names match a pattern.

    It removes those of this machine whose process has ended or is this one, so this process must
    not be writing there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> left = folder / f".a.txt.{platform.node()}.{os.getpid()}.{uuid.uuid4().hex}.tmp"
    >>> left.touch()
    >>> remove_scratch(folder, "a.*")
    >>> left.exists()
    False
    """
    alive = set(psutil.pids()) - {os.getpid()}
    for left in folder.glob(f".{pattern}.{platform.node()}.*.*.tmp"):
        writer = left.name.split(".")[-3]
        if writer.isdecimal() and int(writer) not in alive:
            left.unlink(missing_ok=True)
