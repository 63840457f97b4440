"""The arrays of a pytree in one sealed file, or in the parts that several processes wrote."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.devices.processes import ALONE, Group, spans
from jaxgpu.inputs import arguments
from jaxgpu.inputs.arguments import is_key

from . import binary, parts, sealed
from .sealed import CheckpointError

FORMAT = "jaxgpu-checkpoint"

type Meta = dict[str, Any]
# the part of an array, by its number, that lies in a box
type Reader = Callable[[int, Any], np.ndarray]


def save(path: str | Path, tree: Any, meta: Meta | None = None) -> None:
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
    leaves = binary.named_leaves(tree)
    for name, leaf in leaves:
        if not binary.is_kept(leaf):
            kind = binary.kind_of(leaf)
            raise TypeError(
                f"checkpoint.save: tree{name} of type {kind}; it must be of a type that JAX has"
            )
    arrays = [np.asarray(binary.numbers_of(leaf)) for _, leaf in leaves]
    header = sealed.stamp(FORMAT) | {
        "leaves": [
            [name, binary.kind_of(x), list(a.shape)] for (name, x), a in zip(leaves, arrays)
        ],
        "meta": {} if meta is None else sealed.jsonable(meta),
    }
    sealed.write(path, header, arrays)


def load(path: str | Path, like: Any) -> tuple[Any, Meta]:
    """Read `path` into the structure of `like` and return it with its `meta`.

    `like` fixes names, dtypes and shapes; its values are not used. Leaves come back as NumPy
    arrays (typed keys as keys).

    Raises:
        CheckpointError: missing, torn, altered, foreign, newer, or of another structure.
        TypeError: a leaf of `like` that holds no numbers.
    """
    path = arguments.path("checkpoint.load: path", path, "a file")
    arguments.arrays("checkpoint.load: like", like)
    return load_as(path, lambda meta: like)


def read(path: str | Path) -> tuple[dict[str, np.ndarray], Meta]:
    """Read `path` without a template: arrays by the names of their leaves, and `meta`.

    Raises:
        CheckpointError: missing, torn, altered, foreign or newer.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp(), "a.npz")
    >>> save(file, {"x": np.arange(3.0)}, {"step": 7})
    >>> read(file)
    ({"['x']": array([0., 1., 2.])}, {'step': 7})
    """
    path = arguments.path("checkpoint.read: path", path, "a file")
    with sealed.as_written(path):
        header, array = _opened(path, ALONE)
        return {leaf[0]: array(i, ...) for i, leaf in enumerate(header["leaves"])}, header["meta"]


def leaves(path: Path) -> tuple[list[Any], Meta]:
    """The arrays and keys of a checkpoint in their order, and `meta`.

    Raises:
        CheckpointError: missing, torn, altered, foreign or of another version.
    """
    with sealed.as_written(path):
        header, array = _opened(path, ALONE)
        kinds = [kind for _, kind, _ in header["leaves"]]
        return [binary.leaf_of(array(i, ...), kind) for i, kind in enumerate(kinds)], header["meta"]


def load_as(path: Path, template: Callable[[Meta], Any], group: Group = ALONE) -> tuple[Any, Meta]:
    """What `load` returns, where `template(meta)` gives the structure.

    Of several processes each reads what its own devices hold, and looks at the seals of its share
    of the parts: all of them must come through before any uses what it has read.
    """
    with sealed.as_written(path):
        header, array = _opened(path, group)
        like = template(header["meta"])
        _compare(path, header["leaves"], like)
        old = jax.tree.leaves(like)
        leaves = [_restored(array, number, leaf) for number, leaf in enumerate(old)]
        return jax.tree.unflatten(jax.tree.structure(like), leaves), header["meta"]


def _opened(path: Path, group: Group) -> tuple[dict[str, Any], Reader]:
    """The header of a checkpoint, and a way to its arrays."""
    if path.is_dir():
        return parts.opened(path, group)
    sealed.seal_of(path)
    with sealed.opened(path, FORMAT) as (header, members):
        arrays = [
            binary.from_bytes(members[str(i)], kind, shape)
            for i, (_, kind, shape) in enumerate(header["leaves"])
        ]
    return header, lambda number, at: arrays[number][at]


def _compare(path: Path, leaves: list[list[Any]], like: Any) -> None:
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


def _restored(array: Reader, number: int, old: Any) -> Any:
    """An array of a checkpoint, in several processes where `old` is, else in the host's memory."""
    new = array(number, ...) if not spans(old) else _spread(array, number, binary.numbers_of(old))
    if is_key(old):
        return jax.random.wrap_key_data(jnp.asarray(new), impl=str(jax.random.key_impl(old)))
    return new


def _spread(array: Reader, number: int, old: Any) -> jax.Array:
    piece = lambda at: array(number, at)
    return jax.make_array_from_callback(old.shape, old.sharding, piece, dtype=old.dtype)
