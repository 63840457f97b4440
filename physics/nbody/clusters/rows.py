"""Vectors of bodies as one array [3, N], or as a tuple of three rows [N].

A CPU goes through an array in one loop. XLA for a GPU makes one kernel of all that has one shape,
and several, with copies between them, of what is stacked: there every row is an array of its own
(`at_once`). What is written once for both takes a vector's rows by `each` and `joined`.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import jax.numpy as jnp
from jax import Array

# an array [D, N], or a tuple of its rows [N]
type Vector = Any


def each(
    f: Callable[..., tuple[Array, ...]], numbers: tuple[Array, ...], *vectors: Vector
) -> tuple[Vector, ...]:
    """The vectors that `f(*numbers, *vectors)` gives, row by row where they are tuples of rows.

    numbers: [N], one a body.

    >>> moved = lambda h, x, v: (x + h * v, v)
    >>> x, v = (jnp.zeros(1), jnp.ones(1)), (jnp.ones(1), jnp.ones(1))
    >>> [row.item() for row in each(moved, (jnp.full(1, 0.5),), x, v)[0]]
    [0.5, 1.5]
    """
    if not isinstance(vectors[0], tuple):
        shape = vectors[0].shape
        return f(*(jnp.broadcast_to(number[None], shape) for number in numbers), *vectors)
    rows = zip(*vectors, strict=True)
    return tuple(zip(*(f(*numbers, *row) for row in rows), strict=True))


def joined(*vectors: Vector) -> Vector:
    """The rows of all vectors, one after the other."""
    if not isinstance(vectors[0], tuple):
        return jnp.concatenate(vectors)
    return tuple(row for vector in vectors for row in vector)


def stacked(vector: Vector) -> Array:
    """The vector as one array."""
    return jnp.stack(vector) if isinstance(vector, tuple) else vector


def apart(group: Any, count: int) -> Any:
    """Bodies whose arrays [D, N] are tuples of rows, the last one repeated up to `count` bodies."""
    there = jnp.arange(count) < group.t.size

    def row(value: Array) -> Array:
        padded = jnp.pad(value, (0, count - value.size))
        return jnp.where(there, padded, value[-1:])

    def field(value: Array) -> Vector:
        return row(value) if value.ndim == 1 else tuple(map(row, value))

    return _with(field, group)


def together[T](group: T, count: int) -> T:
    """The first `count` bodies of `group`, whose tuples of rows are arrays again."""
    return _with(lambda value: stacked(value)[..., :count], group)


def _with[T](change: Callable[[Any], Any], group: T) -> T:
    flat: Any = group  # a dataclass, which no type says
    return type(group)(**{f.name: change(getattr(flat, f.name)) for f in fields(flat)})
