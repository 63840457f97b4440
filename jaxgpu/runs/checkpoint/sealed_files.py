"""Sealed files: arrays with one checksum over the complete file.

A sealed file is an uncompressed `.npz` archive. Its last 64 bytes (the comment of the zip archive)
are the SHA-256 of all bytes before them, so every flipped bit is detected. It is written under a
temporary name, synced and renamed: a reader sees the complete file or none. Nothing is pickled.
Saving costs one pass over the bytes and one hash of them.
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

from ..files import replace_file
from . import untrusted_data
from .binary import as_bytes
from .members import Members

VERSION = 2
_DIGEST_LENGTH = 64  # hexadecimal characters of a SHA-256
# errors of zip, JSON, NumPy and JAX for a damaged file
_DAMAGE_ERRORS = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, EOFError)
_DAMAGE_ERRORS += (RecursionError, NotImplementedError, struct.error, zipfile.BadZipFile)


class CheckpointError(ValueError):
    """Error for an unusable checkpoint; the message names the file and the reason.

    >>> from jaxgpu.runs.checkpoint import read
    >>> read("/nowhere/a.npz")
    Traceback (most recent call last):
    jaxgpu.runs.checkpoint.sealed_files.CheckpointError: /nowhere/a.npz: no such checkpoint; ...
    """


def stamp(kind: str) -> dict[str, Any]:
    """Return the first fields of every header: the format, and the versions that wrote it."""
    return {
        "format": kind,
        "version": VERSION,
        "jaxgpu": jaxgpu.__version__,
        "jax": jax.__version__,
    }


def write(path: Path, header: dict[str, Any], arrays: list[np.ndarray]) -> str:
    """Write arrays, as bytes, and their JSON header to `path`; return the checksum."""
    members: dict[str, Any] = {str(i): as_bytes(a) for i, a in enumerate(arrays)}
    with replace_file(path, "wb+") as file:
        np.savez(file, header=as_bytes(json.dumps(header).encode()), **members)
        return _append_checksum(file)


@contextlib.contextmanager
def open_sealed(path: Path, kind: str) -> Iterator[tuple[dict[str, Any], Members]]:
    """Open a sealed file; yield its header and its members, raw bytes by index of the array.

    Raises:
        CheckpointError: another format or version. The checksum is not verified.
    """
    with Members(path) as members:
        if "header" not in members:
            raise CheckpointError(f"{path}: not a jaxgpu checkpoint; use a file that jaxgpu wrote")
        header = untrusted_data.parse(members["header"].tobytes().decode())
        refuse_foreign(path, header, kind)
        yield header, members


def refuse_foreign(path: Path, header: dict[str, Any], kind: str) -> None:
    """Raise if the header is of another format, or of another version of it."""
    if header.get("format") != kind or header["version"] != VERSION:
        raise CheckpointError(
            f"{path}: format {header.get('format')} {header.get('version')}, this version reads "
            f"{kind} {VERSION}; read it with the jaxgpu that wrote it, {header.get('jaxgpu')}"
        )


@contextlib.contextmanager
def convert_errors(path: Path) -> Iterator[None]:
    """Convert errors in the contents of a file to a `CheckpointError` that names the file."""
    try:
        yield
    except CheckpointError:
        raise
    except (FileNotFoundError, IsADirectoryError) as error:
        raise CheckpointError(f"{error.filename}: {error.strerror}; use another folder") from None
    except (*_DAMAGE_ERRORS, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # seek before the start
            raise
        raise CheckpointError(
            f"{path}: its checksum is valid, its content is not ({error!r}); use another"
        ) from error


def jsonable(meta: Any) -> dict[str, Any]:
    """Return `meta`; raise if it is not a dictionary that JSON can hold."""
    fault = None if isinstance(meta, dict) else arguments.format_value(meta)
    try:
        untrusted_data.parse(f"[[{json.dumps(meta)}]]")  # nested as deeply as in a header
    except (TypeError, ValueError, RecursionError) as error:
        fault = f"a value that JSON cannot store ({error})"
    if fault:
        raise TypeError(f"checkpoint.save: meta={fault}; it must be a dictionary of plain values")
    return meta


def _append_checksum(file: Any) -> str:
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"0" * _DIGEST_LENGTH
    file.seek(-_DIGEST_LENGTH, os.SEEK_END)
    end = file.tell()
    digest = _hash_file(file, end)
    file.seek(end)
    file.write(digest)
    return digest.decode()


def seal_of(path: Path) -> str:
    """Return the checksum of a file, after verifying it.

    Raises:
        CheckpointError: there is no such file, or its bytes do not match its checksum.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint; give a file that jaxgpu wrote")
    end = path.stat().st_size - _DIGEST_LENGTH
    with open(path, "rb") as file:
        if end <= 0 or (digest := _hash_file(file, end)) != file.read():
            raise CheckpointError(f"{path}: damaged or not a jaxgpu checkpoint; use another")
        return digest.decode()


def _hash_file(file: Any, end: int) -> bytes:
    """Return the SHA-256 of the first `end` bytes; leave the file positioned there."""
    file.seek(0)
    digest = hashlib.sha256()
    while end > 0:
        block = file.read(min(end, 1 << 22))
        digest.update(block)
        end -= len(block)
    return digest.hexdigest().encode()
