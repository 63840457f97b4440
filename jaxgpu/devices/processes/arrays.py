"""Arrays that span several processes, none of which can read all of their values."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec, Sharding

_BLOCK_BYTES = 1 << 26  # bytes that are copied to every process at a time


def spans(leaf: Any) -> bool:
    """Return True if an array spans several processes.

    >>> spans(jax.numpy.zeros(3))
    False
    """
    return isinstance(leaf, Array) and not leaf.is_fully_addressable


def place(leaf: Any, sharding: Sharding) -> Array:
    """Put `leaf` on the devices of a sharding; every process must pass the same values.

    Each process copies the values of its own devices, without communication: `jax.device_put` would
    send all values to all devices to compare them, and rejects keys. Only `jax.device_put` keeps a
    Python number weakly typed, which makes traces equal to those in a single process.

    >>> here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    >>> place(np.zeros(3), here).sharding == here
    True
    """
    if sharding.is_fully_addressable or spans(leaf):
        return jax.device_put(leaf, sharding)
    if jax.typeof(leaf).weak_type:
        return jax.device_put(jnp.asarray(leaf), sharding)
    if not isinstance(leaf, Array):
        leaf = np.asarray(leaf)
        leaf = leaf.astype(jax.dtypes.canonicalize_dtype(leaf.dtype), copy=False)
    return jax.make_array_from_callback(leaf.shape, sharding, lambda at: leaf[at], dtype=leaf.dtype)


def blocks(array: Array, most: int = _BLOCK_BYTES) -> Iterator[np.ndarray]:
    """Yield the values of an array that spans processes in memory order, up to `most` bytes each.

    All processes that hold a part of it must call this, and each gets all values.

    >>> [block.shape for block in blocks(jax.numpy.zeros((4, 2)))]
    [(4, 2)]
    """
    if array.is_fully_replicated or not array.size:
        yield np.asarray(array) if array.size else np.zeros(array.shape, array.dtype)
        return
    axis, inside = 0, array.nbytes  # bytes below one index of the axes before `axis`
    while axis < array.ndim - 1 and inside // array.shape[axis] > most:
        inside, axis = inside // array.shape[axis], axis + 1
    length, behind = array.shape[axis], array.shape[axis + 1 :]
    rows = max(1, min(length, most * length // inside))
    whole = NamedSharding(named_sharding(array).mesh, PartitionSpec())
    for before in np.ndindex(array.shape[:axis]):
        for begin in range(0, length, rows):
            sizes = *[1] * axis, min(rows, length - begin), *behind
            start = np.asarray([*before, begin, *[0] * len(behind)], np.int32)
            yield np.asarray(_make_block_program(sizes, whole)(array, start))


@functools.lru_cache(8)
def _make_block_program(sizes: tuple[int, ...], whole: NamedSharding) -> Any:
    """Return a program that copies a block of this shape to every process."""
    return jax.jit(lambda x, at: jax.lax.dynamic_slice(x, list(at), sizes), out_shardings=whole)


def named_sharding(array: Array) -> NamedSharding:
    """Return the sharding of an array that spans processes.

    Raises:
        TypeError: the array is not on a mesh.
    """
    if not isinstance(array.sharding, NamedSharding):
        raise TypeError(
            f"run: an array of shape {list(array.shape)} in several processes is not on a mesh; "
            "place it by mesh.shard or mesh.replicate"
        )
    return array.sharding
