"""A file of arrays that is either exactly right or refused: one digest over all of it.

It is an uncompressed `.npz` archive whose last 64 bytes (the comment of the zip archive) are the
SHA-256 of everything before them, so no flipped bit can pass. It is written to a temporary name,
synced and renamed: a reader sees the whole file or none. Nothing is pickled. Saving costs one pass
over the bytes and one hash of them.
"""

import contextlib
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxgpu
from jaxgpu.inputs import arguments
from jaxgpu.inputs.arguments import is_key

from ..files import replacing

VERSION = 2
_DIGEST = 64  # hexadecimal characters of a SHA-256


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
    members: dict[str, Any] = {str(i): _as_bytes(a) for i, a in enumerate(arrays)}
    with replacing(path, "wb+") as file:
        np.savez(file, header=_as_bytes(json.dumps(header).encode()), **members)
        return _seal(file)


@contextlib.contextmanager
def opened(path: Path, kind: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """The header of a sealed file, and its members: raw bytes by the number of their array.

    Raises:
        CheckpointError: foreign or newer. The seal is not looked at.
    """
    with np.load(path, allow_pickle=False) as members:
        if "header" not in members:
            raise CheckpointError(f"{path}: not a jaxgpu checkpoint; use a file that jaxgpu wrote")
        header = json.loads(members["header"].tobytes())
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
    except (ValueError, TypeError, LookupError, AttributeError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{path}: sealed, but not as this version writes it ({error!r}); use another"
        ) from error


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a pytree by their names."""
    return [(jax.tree_util.keystr(at), leaf) for at, leaf in jax.tree.leaves_with_path(tree)]


def kind_of(leaf: Any) -> str:
    """What a file calls a leaf's type: its dtype, or the generator of a key."""
    if is_key(leaf):
        return f"key<{jax.random.key_impl(leaf)}>"
    return str(leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype)


def numbers_of(leaf: Any) -> Any:
    """The array that stands for a leaf: itself, or the words of a key."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def plain(meta: Any) -> dict[str, Any]:
    """`meta`, which JSON can hold."""
    fault = None if isinstance(meta, dict) else arguments.shown(meta)
    try:
        json.dumps(meta)
    except (TypeError, ValueError, RecursionError) as error:
        fault = f"what JSON cannot hold ({error})"
    if fault:
        raise TypeError(f"checkpoint.save: meta={fault}; it must be a dictionary of plain values")
    return meta


# raw bytes, since npy knows no bfloat16 and its own header would be a second truth


def _as_bytes(data: np.ndarray | bytes) -> np.ndarray:
    raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
    return np.frombuffer(raw, np.uint8)


def from_bytes(raw: np.ndarray, kind: str, shape: list[int]) -> np.ndarray:
    """The array of a kind and a shape that was kept as bytes."""
    return raw.view(dtype_of(kind)).reshape(shape)


def leaf_of(numbers: np.ndarray, kind: str) -> Any:
    """A leaf of a kind from the array that stood for it: that array, or a key."""
    if not kind.startswith("key<"):
        return numbers
    return jax.random.wrap_key_data(jnp.asarray(numbers), impl=kind[4:-1])


def dtype_of(kind: str) -> np.dtype:
    """The dtype of what stands for a leaf of this kind."""
    return np.dtype("uint32") if kind.startswith("key<") else jnp.dtype(kind)


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
