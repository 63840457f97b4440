"""A file of arrays that is either exactly right or refused: one digest over all of it.

It is an uncompressed `.npz` archive whose last 64 bytes (the comment of the zip archive) are the
SHA-256 of everything before them, so no flipped bit can pass. It is written to a temporary name,
synced and renamed: a reader sees the whole file or none. Nothing is pickled. Saving costs one pass
over the bytes and one hash of them.
"""

import contextlib
import errno
import hashlib
import json
import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxgpu
from jaxgpu.inputs import arguments

from ..files import replacing
from . import plain
from .binary import as_bytes
from .members import Members

VERSION = 2
_DIGEST = 64  # hexadecimal characters of a SHA-256
# what a damaged file makes of zip, JSON, NumPy and JAX
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, EOFError)
_DAMAGE += (RecursionError, NotImplementedError, struct.error, zipfile.BadZipFile)


class CheckpointError(ValueError):
    """A checkpoint that must not be used; the message names the file and the reason.

    >>> from jaxgpu.runs.checkpoint import read
    >>> read("/nowhere/a.npz")
    Traceback (most recent call last):
    jaxgpu.runs.checkpoint.sealed.CheckpointError: /nowhere/a.npz: no such checkpoint; ...
    """


def stamp(kind: str) -> dict[str, Any]:
    """What every header begins with: what the file is, and which versions wrote it."""
    return {
        "format": kind,
        "version": VERSION,
        "jaxgpu": jaxgpu.__version__,
        "jax": jax.__version__,
    }


def write(path: Path, header: dict[str, Any], arrays: list[np.ndarray]) -> str:
    """Write arrays, as bytes, and their header (what JSON can hold) to `path`; the seal of it."""
    members: dict[str, Any] = {str(i): as_bytes(a) for i, a in enumerate(arrays)}
    with replacing(path, "wb+") as file:
        np.savez(file, header=as_bytes(json.dumps(header).encode()), **members)
        return _seal(file)


@contextlib.contextmanager
def opened(path: Path, kind: str) -> Iterator[tuple[dict[str, Any], Members]]:
    """The header of a sealed file, and its members: raw bytes by the number of their array.

    Raises:
        CheckpointError: foreign or newer. The seal is not looked at.
    """
    with Members(path) as members:
        if "header" not in members:
            raise CheckpointError(f"{path}: not a jaxgpu checkpoint; use a file that jaxgpu wrote")
        header = plain.parse(members["header"].tobytes().decode())
        refuse_foreign(path, header, kind)
        yield header, members


def refuse_foreign(path: Path, header: dict[str, Any], kind: str) -> None:
    """Refuse what is of another kind, or of another version of it."""
    if header.get("format") != kind or header["version"] != VERSION:
        raise CheckpointError(
            f"{path}: format {header.get('format')} {header.get('version')}, this is "
            f"{kind} {VERSION}; read it with the jaxgpu that wrote it, {header.get('jaxgpu')}"
        )


@contextlib.contextmanager
def as_written(path: Path) -> Iterator[None]:
    """Errors in what a file holds, as one sentence that names it."""
    try:
        yield
    except CheckpointError:
        raise
    except (FileNotFoundError, IsADirectoryError) as error:
        raise CheckpointError(f"{error.filename}: {error.strerror}; use another folder") from None
    except (*_DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a place before the file
            raise
        raise CheckpointError(
            f"{path}: sealed, but not as this version writes it ({error!r}); use another"
        ) from error


def jsonable(meta: Any) -> dict[str, Any]:
    """Return `meta`, which JSON can hold."""
    fault = None if isinstance(meta, dict) else arguments.shown(meta)
    try:
        plain.parse(f"[[{json.dumps(meta)}]]")  # as deep as it will lie in a header
    except (TypeError, ValueError, RecursionError) as error:
        fault = f"what JSON cannot hold ({error})"
    if fault:
        raise TypeError(f"checkpoint.save: meta={fault}; it must be a dictionary of plain values")
    return meta


def _seal(file: Any) -> str:
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"0" * _DIGEST
    file.seek(-_DIGEST, os.SEEK_END)
    end = file.tell()
    digest = _digest(file, end)
    file.seek(end)
    file.write(digest)
    return digest.decode()


def seal_of(path: Path) -> str:
    """The seal of a file.

    Raises:
        CheckpointError: there is no such file, or its bytes are not those that were sealed.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint; give a file that jaxgpu wrote")
    end = path.stat().st_size - _DIGEST
    with open(path, "rb") as file:
        if end <= 0 or (digest := _digest(file, end)) != file.read():
            raise CheckpointError(f"{path}: torn, altered or not a jaxgpu checkpoint; use another")
        return digest.decode()


def _digest(file: Any, end: int) -> bytes:
    """SHA-256 of the first `end` bytes; leaves the file positioned there."""
    file.seek(0)
    digest = hashlib.sha256()
    while end > 0:
        block = file.read(min(end, 1 << 22))
        digest.update(block)
        end -= len(block)
    return digest.hexdigest().encode()
