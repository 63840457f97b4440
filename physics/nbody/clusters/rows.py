"""Vectors of bodies as one array [3, N], or as a tuple of three rows [N].

A CPU processes an array in one loop. XLA for a GPU fuses operations of equal shape into one kernel,
but stacked arrays need several, with copies between them. There every row is a separate array
(`full_blocks`). Code for both representations accesses the rows with `map_rows` and `concat`.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import jax.numpy as jnp
from jax import Array

# an array [D, N], or a tuple of its rows [N]
type Vector = Any


def map_rows(
    f: Callable[..., tuple[Array, ...]], numbers: tuple[Array, ...], *vectors: Vector
) -> tuple[Vector, ...]:
    """Apply `f(*numbers, *vectors)` to each component of vectors that are tuples, else once.

    numbers: [N], one per body.

    >>> moved = lambda h, x, v: (x + h * v, v)
    >>> x, v = (jnp.zeros(1), jnp.ones(1)), (jnp.ones(1), jnp.ones(1))
    >>> [row.item() for row in map_rows(moved, (jnp.full(1, 0.5),), x, v)[0]]
    [0.5, 1.5]
    """
    if not isinstance(vectors[0], tuple):
        shape = vectors[0].shape
        return f(*(jnp.broadcast_to(number[None], shape) for number in numbers), *vectors)
    rows = zip(*vectors, strict=True)
    return tuple(zip(*(f(*numbers, *row) for row in rows), strict=True))


def concat(*vectors: Vector) -> Vector:
    """Concatenate the rows of all vectors."""
    if not isinstance(vectors[0], tuple):
        return jnp.concatenate(vectors)
    return tuple(row for vector in vectors for row in vector)


def as_array(vector: Vector) -> Array:
    """Return the vector as one array."""
    return jnp.stack(vector) if isinstance(vector, tuple) else vector


def split_rows(group: Any, count: int) -> Any:
    """Split arrays [D, N] of bodies into tuples of rows, padded with the last body to `count`."""
    there = jnp.arange(count) < group.t.size

    def row(value: Array) -> Array:
        padded = jnp.pad(value, (0, count - value.size))
        return jnp.where(there, padded, value[-1:])

    def field(value: Array) -> Vector:
        return row(value) if value.ndim == 1 else tuple(map(row, value))

    return _map_fields(field, group)


def stack_rows[T](group: T, count: int) -> T:
    """Stack the tuples of rows of the first `count` bodies of `group` into arrays."""
    return _map_fields(lambda value: as_array(value)[..., :count], group)


def _map_fields[T](change: Callable[[Any], Any], group: T) -> T:
    flat: Any = group  # a dataclass; T cannot express that
    return type(group)(**{f.name: change(getattr(flat, f.name)) for f in fields(flat)})
