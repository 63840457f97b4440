"""Checkpoints that are either exactly right or refused: one file, one digest over all of it.

A checkpoint is an uncompressed `.npz` archive whose last 64 bytes (the comment of the zip archive)
are the SHA-256 of everything before them, so no flipped bit can pass. It is written to a
temporary name, synced and renamed: a reader sees the whole file or none. Nothing is pickled.
Saving costs one pass over the bytes and one hash of them.
"""

import contextlib
import hashlib
import json
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxgpu
from jaxgpu import arguments, ranges
from jaxgpu.arguments import is_key
from jaxgpu.files import replacing

VERSION = 1
_FORMAT = "jaxgpu-checkpoint"
_DIGEST = 64  # hexadecimal characters of a SHA-256
_STEP = ranges.Range(least=0, below=10**12, whole=True, one=True)  # twelve digits in a name
_KEEP = ranges.Range(least=1, whole=True, one=True)


class CheckpointError(ValueError):
    """A checkpoint that must not be used; the message names the file and the reason."""


def save(path: str | Path, tree: Any, meta: dict[str, Any] | None = None) -> None:
    """Write the arrays of the pytree `tree`, and `meta` (what JSON can hold), to `path`.

    The file appears under its name complete and synced to disk, or not at all.

    >>> import tempfile; from pathlib import Path
    >>> file = Path(tempfile.mkdtemp(), "a.npz")
    >>> save(file, {"x": np.arange(3.0)}, {"step": 7})
    >>> load(file, {"x": np.zeros(3)})
    ({'x': array([0., 1., 2.])}, {'step': 7})

    Raises:
        TypeError: a leaf that holds no numbers, or a `meta` that JSON cannot hold.
    """
    path = arguments.path("checkpoint.save: path", path, "a file")
    arguments.arrays("checkpoint.save: tree", tree)
    arrays = [(name, *_to_numpy(leaf)) for name, leaf in _named_leaves(tree)]
    header = {
        "format": _FORMAT,
        "version": VERSION,
        "jaxgpu": jaxgpu.__version__,
        "jax": jax.__version__,
        "leaves": [[name, kind, list(a.shape)] for name, kind, a in arrays],
        "meta": {} if meta is None else _plain(meta),
    }
    members: dict[str, Any] = {str(i): _as_bytes(a) for i, (_, _, a) in enumerate(arrays)}
    with replacing(path, "wb+") as file:
        np.savez(file, header=_as_bytes(json.dumps(header).encode()), **members)
        _seal(file)


def load(path: str | Path, like: Any) -> tuple[Any, dict[str, Any]]:
    """Read `path` into the structure of `like` and return it with its `meta`.

    `like` fixes names, dtypes and shapes; its values are not used. Leaves come back as NumPy
    arrays (typed keys as keys).

    Raises:
        CheckpointError: missing, torn, altered, foreign, newer, or of another structure.
        TypeError: a leaf of `like` that holds no numbers.
    """
    path = arguments.path("checkpoint.load: path", path, "a file")
    arguments.arrays("checkpoint.load: like", like)
    return _load(path, lambda meta: like)


def _load(path: Path, template: Callable[[dict[str, Any]], Any]) -> tuple[Any, dict[str, Any]]:
    with _as_written(path):
        return _restore(path, *_read(path), template)


@contextlib.contextmanager
def _as_written(path: Path) -> Iterator[None]:
    """Errors in what a file holds, as one sentence that names it."""
    try:
        yield
    except CheckpointError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"{path}: sealed, but not as this version writes it ({error!r}); use another"
        ) from error


def _restore(
    path: Path,
    header: dict[str, Any],
    arrays: list[np.ndarray],
    template: Callable[[dict[str, Any]], Any],
) -> tuple[Any, dict[str, Any]]:
    like = template(header["meta"])
    want = [(name, *_to_numpy(leaf)) for name, leaf in _named_leaves(like)]
    found = [(name, kind, tuple(shape)) for name, kind, shape in header["leaves"]]
    for (name, kind, a), got in zip(want, found):
        if (name, kind, a.shape) != got:
            raise CheckpointError(
                f"{path}: holds {got[0]} {got[1]}{list(got[2])} where this run has {name} "
                f"{kind}{list(a.shape)}; resume with the options that wrote it"
            )
    if len(want) != len(found):
        raise CheckpointError(
            f"{path}: holds {len(found)} arrays where this run has {len(want)}; "
            "resume with the options that wrote it"
        )
    leaves = [_from_numpy(a, old) for a, old in zip(arrays, jax.tree.leaves(like))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), header["meta"]


def read(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read `path` without a template: arrays by the names of their leaves, and `meta`.

    Raises:
        CheckpointError: missing, torn, altered, foreign or newer.
    """
    path = arguments.path("checkpoint.read: path", path, "a file")
    with _as_written(path):
        header, arrays = _read(path)
        return {leaf[0]: a for leaf, a in zip(header["leaves"], arrays)}, header["meta"]


def save_step(directory: str | Path, step: int, tree: Any, meta: dict[str, Any], keep: int = 2):
    """Write the checkpoint of `step` into `directory` and drop all but the newest `keep`.

    Raises:
        ValueError, TypeError: a step or a number to keep that is no count, besides those of `save`.
    """
    directory = arguments.path("checkpoint.save_step: directory", directory)
    ranges.refuse("checkpoint.save_step: step", step, _STEP)
    ranges.refuse("checkpoint.save_step: keep", keep, _KEEP)
    step, meta = int(step), _plain(meta)
    save(directory / f"step-{step:012d}.npz", tree, {**meta, "step": step})
    for old in _steps(directory)[keep:]:
        old.unlink(missing_ok=True)


def load_last(
    directory: str | Path, template: Callable[[dict[str, Any]], Any]
) -> tuple[Any, dict[str, Any]] | None:
    """Load the newest good checkpoint of `directory`; None where there is none at all.

    `template(meta)` gives the structure to expect, which may depend on how far the run was. Each
    checkpoint that must be passed over is named in a warning.

    Raises:
        CheckpointError: checkpoints are there, and none can be used.
    """
    directory = arguments.path("checkpoint.load_last: directory", directory)
    arguments.function("checkpoint.load_last: template", template)
    refused = []
    for path in _steps(directory):
        try:
            found = _load(path, template)
        except CheckpointError as error:
            refused.append(str(error))
            continue
        for reason in refused:
            warnings.warn(f"{reason}; going back to {path.name}", stacklevel=2)
        return found
    if refused:
        raise CheckpointError("; ".join(refused))
    return None


def holds_any(directory: str | Path) -> bool:
    """Whether there is a checkpoint in `directory`, good or not."""
    return bool(_steps(arguments.path("checkpoint.holds_any: directory", directory)))


def _read(path: Path) -> tuple[dict[str, Any], list[np.ndarray]]:
    if not path.is_file():
        raise CheckpointError(f"{path}: no such checkpoint; give a file that jaxgpu wrote")
    if not _is_sealed(path):
        raise CheckpointError(f"{path}: torn, altered or not a jaxgpu checkpoint; use another")
    with np.load(path, allow_pickle=False) as members:
        if "header" not in members:
            raise CheckpointError(f"{path}: not a jaxgpu checkpoint; use a file that jaxgpu wrote")
        header = json.loads(members["header"].tobytes())
        if header.get("format") != _FORMAT or header["version"] > VERSION:
            raise CheckpointError(
                f"{path}: format {header.get('format')} {header.get('version')}, this is "
                f"{_FORMAT} {VERSION}; read it with jaxgpu {header.get('jaxgpu')} or newer"
            )
        return header, [
            _from_bytes(members[str(i)], kind, shape)
            for i, (_, kind, shape) in enumerate(header["leaves"])
        ]


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(p), leaf) for p, leaf in jax.tree.leaves_with_path(tree)]


def _to_numpy(leaf: Any) -> tuple[str, np.ndarray]:
    """The kind of a leaf (its dtype, or the generator of a key) and its numbers."""
    if is_key(leaf):
        return f"key<{jax.random.key_impl(leaf)}>", np.asarray(jax.random.key_data(leaf))
    array = np.asarray(leaf)
    return str(array.dtype), array


def _from_numpy(array: np.ndarray, old: Any) -> Any:
    if is_key(old):
        return jax.random.wrap_key_data(jnp.asarray(array), impl=str(jax.random.key_impl(old)))
    return array


def _plain(meta: Any) -> dict[str, Any]:
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


def _from_bytes(raw: np.ndarray, kind: str, shape: list[int]) -> np.ndarray:
    dtype = np.dtype("uint32") if kind.startswith("key<") else jnp.dtype(kind)
    return raw.view(dtype).reshape(shape)


def _seal(file: Any) -> None:
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"0" * _DIGEST
    file.seek(-_DIGEST, os.SEEK_END)
    end = file.tell()
    digest = _digest(file, end)
    file.seek(end)
    file.write(digest)


def _is_sealed(path: Path) -> bool:
    end = path.stat().st_size - _DIGEST
    with open(path, "rb") as file:
        return end > 0 and _digest(file, end) == file.read()


def _digest(file: Any, end: int) -> bytes:
    """SHA-256 of the first `end` bytes; leaves the file positioned there."""
    file.seek(0)
    digest = hashlib.sha256()
    while end > 0:
        block = file.read(min(end, 1 << 22))
        digest.update(block)
        end -= len(block)
    return digest.hexdigest().encode()


def _steps(directory: Path) -> list[Path]:
    """Checkpoints of a directory, newest first."""
    return sorted(directory.glob("step-*.npz"), reverse=True)
