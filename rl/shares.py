"""What the devices of a mesh do together, seen by one of them inside `jax.shard_map`.

Each holds an equal share of the environments. Numbers are drawn for all of them everywhere, and
each device takes its own: they do not depend on how many devices there are. What is summed over the
environments is summed over the devices after that, by one reduction a call.

`axis` is the name of the mesh's axis. Without it one device has everything, and these functions add
no operation.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree


def count(axis: str | None) -> int:
    """How many devices there are."""
    return 1 if axis is None else jax.lax.axis_size(axis)


def own(rows: Array, axis: str | None) -> Array:
    """Of rows [B, ...] that every device has, those of this one, [B / devices, ...]."""
    if axis is None:
        return rows
    size = rows.shape[0] // count(axis)
    return jax.lax.dynamic_slice_in_dim(rows, jax.lax.axis_index(axis) * size, size)


def apart(key: Array, axis: str | None) -> Array:
    """A key that is another one on every device; of one device it is `key`."""
    return key if count(axis) == 1 else jax.random.fold_in(key, jax.lax.axis_index(axis))


def joined(rows: Array, axis: str | None, at: int = 0) -> Array:
    """The rows of all devices one after another along the axis `at` of an array, everywhere."""
    return rows if axis is None else jax.lax.all_gather(rows, axis, axis=at, tiled=True)


def total(tree: Any, axis: str | None) -> Any:
    """The sum over the devices of each number, by one reduction of one vector."""
    return tree if axis is None else _reduced(jax.lax.psum, tree, axis)


def mean(tree: Any, axis: str | None) -> Any:
    """The mean over the devices of each number, by one reduction of one vector."""
    return tree if axis is None else _reduced(jax.lax.pmean, tree, axis)


def moments(x: Array, at: tuple[int, ...], axis: str | None) -> tuple[Array, Array]:
    """The mean over the axes `at` of all devices' `x`, and the sum of squared deviations from it.

    Those of the devices are brought together and merged (Chan, Golub & LeVeque 1983, equations
    2.1), as a mean of squares less the square of a mean would lose the digits of a narrow spread.
    """
    middle = jnp.mean(x, at)
    square = jnp.sum((x - jnp.expand_dims(middle, at)) ** 2, at)
    return merged(middle, square, x.size // middle.size, axis)


def merged(
    middle: Array, square: Array, rows: Array | int, axis: str | None
) -> tuple[Array, Array]:
    """`moments` of all devices from those of each, which are of equally many rows."""
    if axis is None:
        return middle, square
    middles, squares = jnp.moveaxis(jax.lax.all_gather(jnp.stack([middle, square]), axis), 1, 0)
    whole = jnp.mean(middles, 0)
    return whole, jnp.sum(squares, 0) + rows * jnp.sum((middles - whole[None]) ** 2, 0)


def _reduced(reduction: Any, tree: Any, axis: str) -> Any:
    vector, unravel = ravel_pytree(tree)
    return unravel(reduction(vector, axis))
