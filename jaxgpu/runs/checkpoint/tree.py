"""Pytrees in checkpoints: arrays in one sealed file, or in parts written by several processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.devices.processes import ALONE, Group, spans
from jaxgpu.inputs import arguments
from jaxgpu.inputs.arguments import is_key

from . import binary, parts, sealed_files
from .sealed_files import CheckpointError

FORMAT = "jaxgpu-checkpoint"

type Meta = dict[str, Any]
# returns the part of an array, by its index, in a box
type Reader = Callable[[int, Any], np.ndarray]


def save(path: str | Path, tree: Any, meta: Meta | None = None) -> None:
    """Write the arrays of the pytree `tree`, and `meta` as JSON, to `path`.

    The file appears complete and synced to disk, or not at all.

    >>> import tempfile; from pathlib import Path
    >>> file = Path(tempfile.mkdtemp(), "a.npz")
    >>> save(file, {"x": np.arange(3.0)}, {"step": 7})
    >>> load(file, {"x": np.zeros(3)})
    ({'x': array([0., 1., 2.])}, {'step': 7})

    Raises:
        TypeError: a leaf is not numeric, or JSON cannot hold `meta`.
    """
    path = arguments.path("checkpoint.save: path", path, "a file")
    arguments.arrays("checkpoint.save: tree", tree)
    leaves = binary.named_leaves(tree)
    for name, leaf in leaves:
        if not binary.is_kept(leaf):
            kind = binary.kind_of(leaf)
            raise TypeError(
                f"checkpoint.save: tree{name} of type {kind}; it must be a type that JAX supports"
            )
    arrays = [np.asarray(binary.numbers_of(leaf)) for _, leaf in leaves]
    header = sealed_files.stamp(FORMAT) | {
        "leaves": [
            [name, binary.kind_of(x), list(a.shape)] for (name, x), a in zip(leaves, arrays)
        ],
        "meta": {} if meta is None else sealed_files.jsonable(meta),
    }
    sealed_files.write(path, header, arrays)


def load(path: str | Path, like: Any) -> tuple[Any, Meta]:
    """Read `path` into the structure of `like` and return it with its `meta`.

    `like` fixes names, dtypes and shapes; its values are not used. Leaves are returned as NumPy
    arrays (typed keys as keys).

    Raises:
        CheckpointError: missing, truncated, altered, or of another format, version or structure.
        TypeError: a leaf of `like` is not numeric.
    """
    path = arguments.path("checkpoint.load: path", path, "a file")
    arguments.arrays("checkpoint.load: like", like)
    return load_as(path, lambda meta: like)


def read(path: str | Path) -> tuple[dict[str, np.ndarray], Meta]:
    """Read `path` without a template: return arrays by the names of their leaves, and `meta`.

    Raises:
        CheckpointError: missing, truncated, altered, or of another format or version.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "a.npz")
    >>> save(file, {"x": np.arange(3.0)}, {"step": 7})
    >>> read(file)
    ({"['x']": array([0., 1., 2.])}, {'step': 7})
    """
    path = arguments.path("checkpoint.read: path", path, "a file")
    with sealed_files.convert_errors(path):
        header, array = _open_checkpoint(path, ALONE)
        return {leaf[0]: array(i, ...) for i, leaf in enumerate(header["leaves"])}, header["meta"]


def read_leaves(path: Path) -> tuple[list[Any], Meta]:
    """Return the arrays and keys of a checkpoint in their order, and `meta`.

    Raises:
        CheckpointError: missing, truncated, altered, or of another format or version.
    """
    with sealed_files.convert_errors(path):
        header, array = _open_checkpoint(path, ALONE)
        kinds = [kind for _, kind, _ in header["leaves"]]
        return [binary.leaf_of(array(i, ...), kind) for i, kind in enumerate(kinds)], header["meta"]


def load_as(path: Path, template: Callable[[Meta], Any], group: Group = ALONE) -> tuple[Any, Meta]:
    """Load a checkpoint like `load`, into the structure that `template(meta)` returns.

    Each of several processes reads the values of its own devices, and verifies the checksums of its
    share of the parts. All must succeed before any uses the values.
    """
    with sealed_files.convert_errors(path):
        header, array = _open_checkpoint(path, group)
        like = template(header["meta"])
        _check_structure(path, header["leaves"], like)
        old = jax.tree.leaves(like)
        leaves = [_restore_leaf(array, number, leaf) for number, leaf in enumerate(old)]
        return jax.tree.unflatten(jax.tree.structure(like), leaves), header["meta"]


def _open_checkpoint(path: Path, group: Group) -> tuple[dict[str, Any], Reader]:
    """Return the header of a checkpoint, and a function that reads its arrays."""
    if path.is_dir():
        return parts.open_parts(path, group)
    sealed_files.seal_of(path)
    with sealed_files.open_sealed(path, FORMAT) as (header, members):
        arrays = [
            binary.from_bytes(members[str(i)], kind, shape)
            for i, (_, kind, shape) in enumerate(header["leaves"])
        ]
    return header, lambda number, at: arrays[number][at]


def _check_structure(path: Path, leaves: list[list[Any]], like: Any) -> None:
    want = [
        (name, binary.kind_of(leaf), np.shape(binary.numbers_of(leaf)))
        for name, leaf in binary.named_leaves(like)
    ]
    found = [(name, kind, tuple(shape)) for name, kind, shape in leaves]
    for (name, kind, shape), got in zip(want, found):
        if (name, kind, shape) != got:
            raise CheckpointError(
                f"{path}: holds {got[0]} {got[1]}{list(got[2])} where this run has {name} "
                f"{kind}{list(shape)}; resume with the options that wrote it"
            )
    if len(want) != len(found):
        raise CheckpointError(
            f"{path}: holds {len(found)} arrays where this run has {len(want)}; "
            "resume with the options that wrote it"
        )


def _restore_leaf(array: Reader, number: int, old: Any) -> Any:
    """Return an array of a checkpoint: sharded as `old` if it spans processes, else on the host."""
    new = (
        array(number, ...)
        if not spans(old)
        else _read_sharded(array, number, binary.numbers_of(old))
    )
    if is_key(old):
        return jax.random.wrap_key_data(jnp.asarray(new), impl=str(jax.random.key_impl(old)))
    return new


def _read_sharded(array: Reader, number: int, old: Any) -> jax.Array:
    piece = lambda at: array(number, at)
    return jax.make_array_from_callback(old.shape, old.sharding, piece, dtype=old.dtype)
