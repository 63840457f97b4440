"""Transfers between particles and grid on a TPU: all particles at once, a column at a time.

A TPU would pad rows of four numbers to 128, and takes windows of several rows one after another;
single numbers of a column [nodes] it scatters and gathers natively, a node of all particles each.
The functions' meaning is in `transfer`.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from .reach import Reach
from .stencil import ROW, Layout


def spread(x: Sequence[Array], q: Sequence[Array], layout: Layout) -> Array:
    """Sum of the particles' contributions, [nodes, 4]."""
    reach = Reach(x, layout)
    w, at = reach.weight(), reach.row.ravel()
    empty = jnp.zeros(layout.nodes, w.dtype)
    add = lambda a: empty.at[at].add((w * a).ravel(), mode="promise_in_bounds")
    columns = [add(value) for value in _values(reach, q)]
    return jnp.stack(columns + [empty] * (ROW - len(columns)), 1)


def moments(x: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Moments of the grid at the particles, a list of [C, P]."""
    reach, (first, rest) = Reach(x, layout), layout.rows
    w, parts = reach.weight(), [[] for _ in range(len(x) + 1)]
    for i in range(max(first, rest)):
        g = w * _taken(grid, i, reach)
        found = [_sum(g, x[0])] * (i < first)
        slopes = [_sum(o.astype(w.dtype) * g, x[0]) for o in reach.o if i < rest]
        # a column is done before the next one: else all of them are in memory together
        grid, found, slopes = lax.optimization_barrier((grid, found, slopes))
        for part, a in zip(parts, [found, *([a] for a in slopes)]):
            part.extend(a)
    return [a for part in parts for a in part]


def slopes(x: Sequence[Array], q: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Derivative of sum_o w_o <g_o, Q_o> in each coordinate, a list of D arrays [C, P]."""
    reach = Reach(x, layout)
    power = jnp.zeros(reach.shape, grid.dtype)
    for i, value in enumerate(_values(reach, q)):
        grid, power = lax.optimization_barrier((grid, power + _taken(grid, i, reach) * value))
    return [_sum(reach.weight(axis) * power, x[0]) for axis in range(len(x))]


def _values(reach: Reach, q: Sequence[Array]) -> list[Array]:
    """What is given, a column of the grid at a time."""
    parts = [[reach.repeated(a) for a in part] for part in reach.layout.split(q)]
    count = len(parts[0])
    return [reach.value([part[i] for part in parts if i < len(part)]) for i in range(count)]


def _taken(grid: Array, column: int, reach: Reach) -> Array:
    """A column of the grid at the nodes of each particle."""
    return grid[:, column].at[reach.row].get(mode="promise_in_bounds")


def _sum(a: Array, like: Array) -> Array:
    """Sum over the nodes of each particle, [C, P]."""
    return a.sum(range(a.ndim - 1)).reshape(like.shape)
