"""Collective operations of a device mesh, called by each device inside `jax.shard_map`.

Each device has an equal shard of the environments. Random values are sampled for all environments
on every device, which then takes its own rows, so they do not depend on the number of devices. Sums
over environments are also reduced over the devices, with one reduction per call.

`axis` is the name of the mesh axis. None means one device, and no operation is added.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree


def axis_size(axis: str | None) -> int:
    """Return the number of devices."""
    return 1 if axis is None else jax.lax.axis_size(axis)


def local_rows(rows: Array, axis: str | None) -> Array:
    """Return this device's rows [B / devices, ...] of the replicated rows [B, ...]."""
    if axis is None:
        return rows
    size = rows.shape[0] // axis_size(axis)
    return jax.lax.dynamic_slice_in_dim(rows, jax.lax.axis_index(axis) * size, size)


def device_key(key: Array, axis: str | None) -> Array:
    """Return a key that differs on every device; on one device it is `key`."""
    return key if axis_size(axis) == 1 else jax.random.fold_in(key, jax.lax.axis_index(axis))


def all_gather(rows: Array, axis: str | None, at: int = 0) -> Array:
    """Gather the rows of all devices along the array axis `at`; the result is replicated."""
    return rows if axis is None else jax.lax.all_gather(rows, axis, axis=at, tiled=True)


def psum(tree: Any, axis: str | None) -> Any:
    """Sum each leaf over the devices, in one reduction of one vector."""
    return tree if axis is None else _reduce(jax.lax.psum, tree, axis)


def pmean(tree: Any, axis: str | None) -> Any:
    """Average each leaf over the devices, in one reduction of one vector."""
    return tree if axis is None else _reduce(jax.lax.pmean, tree, axis)


def moments(x: Array, at: tuple[int, ...], axis: str | None) -> tuple[Array, Array]:
    """Return mean and sum of squared deviations of all devices' `x` over the array axes `at`.

    The devices' moments are gathered and merged (Chan, Golub & LeVeque 1983, equations 2.1). The
    mean of squares minus the squared mean would lose precision where the spread is narrow.
    """
    middle = jnp.mean(x, at)
    square = jnp.sum((x - jnp.expand_dims(middle, at)) ** 2, at)
    return merge_moments(middle, square, x.size // middle.size, axis)


def merge_moments(
    middle: Array, square: Array, rows: Array | int, axis: str | None
) -> tuple[Array, Array]:
    """Merge the `moments` of all devices, which have equally many rows."""
    if axis is None:
        return middle, square
    middles, squares = jnp.moveaxis(jax.lax.all_gather(jnp.stack([middle, square]), axis), 1, 0)
    whole = jnp.mean(middles, 0)
    return whole, jnp.sum(squares, 0) + rows * jnp.sum((middles - whole[None]) ** 2, 0)


def _reduce(reduction: Any, tree: Any, axis: str) -> Any:
    vector, unravel = ravel_pytree(tree)
    return unravel(reduction(vector, axis))
