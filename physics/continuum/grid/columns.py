"""Transfers between particles and grid on a TPU: all particles at once, a column at a time.

A TPU would pad rows of four numbers to 128, and takes windows of several rows one after another;
single numbers of a column [nodes] it scatters and gathers natively, a node of all particles each.
The functions' meaning is in `transfer`.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

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
    w = reach.weight()
    g = [w * a for a in _taken(grid, reach.row, max(first, rest))]
    m = [_sum(a, x[0]) for a in g[:first]]
    return m + [_sum(o.astype(w.dtype) * a, x[0]) for o in reach.o for a in g[:rest]]


def slopes(x: Sequence[Array], q: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Derivative of sum_o w_o <g_o, Q_o> in each coordinate, a list of D arrays [C, P]."""
    reach = Reach(x, layout)
    values = _values(reach, q)
    g = _taken(grid, reach.row, len(values))
    power = sum(a * b for a, b in zip(g, values))
    return [_sum(reach.weight(axis) * power, x[0]) for axis in range(len(x))]


def _values(reach: Reach, q: Sequence[Array]) -> list[Array]:
    """What is given, a column of the grid at a time."""
    parts = [[reach.repeated(a) for a in part] for part in reach.layout.split(q)]
    count = len(parts[0])
    return [reach.value([part[i] for part in parts if i < len(part)]) for i in range(count)]


def _taken(grid: Array, row: Array, count: int) -> list[Array]:
    """The first columns of the grid at rows of it, each shaped as `row`."""
    return [grid[:, i].at[row].get(mode="promise_in_bounds") for i in range(count)]


def _sum(a: Array, like: Array) -> Array:
    """Sum over the nodes of each particle, [C, P]."""
    return a.sum(range(a.ndim - 1)).reshape(like.shape)
