"""Columns that make up a table [..., K], as a field on the grid is one.

A CPU stacks them. On a GPU a stack would be an array of its own, and each of its columns too; there
an entry chooses among the columns by its number, which is computed where the table is used.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def stacked(columns: Sequence[Array]) -> Array:
    """The columns side by side along a new last axis.

    >>> stacked([jnp.array([1.0, 2.0]), jnp.zeros(2)]).tolist()
    [[1.0, 0.0], [2.0, 0.0]]
    """
    stack = lambda *columns: jnp.stack(columns, -1)
    return lax.platform_dependent(*columns, cpu=stack, default=_by_choice)


def chosen(columns: Sequence[Array]) -> Array:
    """A table by choice among as many that have its shape."""
    *others, table = columns
    for i, other in enumerate(others):
        table = jnp.where(_only(i, len(columns)), other, table)
    return table


def _by_choice(*columns: Array) -> Array:
    shape = (*columns[0].shape, len(columns))
    return chosen([jnp.broadcast_to(a[..., None], shape) for a in columns])


def replaced(table: Array, i: int, column: Array) -> Array:
    """The table [n, K] with another column number i.

    >>> replaced(jnp.zeros((2, 3)), 1, jnp.array([1.0, 2.0])).tolist()
    [[0.0, 1.0, 0.0], [0.0, 2.0, 0.0]]
    """
    return lax.platform_dependent(
        table,
        column,
        cpu=lambda table, column: table.at[:, i].set(column),
        default=lambda table, column: jnp.where(_only(i, table.shape[1]), column[:, None], table),
    )


def _only(i: int, columns: int) -> np.ndarray:
    return np.arange(columns) == i  # a constant: as an expression it would be a launch
