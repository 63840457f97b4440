"""P2G and G2P transfers on a TPU: all particles in one batch, one column of the grid at a time.

A TPU would pad rows of four numbers to 128, and processes windows of several rows one after
another. It scatters and gathers single numbers of a column [nodes] natively, one per node of a
particle. The functions are defined in `transfer`.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from .footprint import Footprint
from .stencil import ROW, Layout


def p2g(x: Sequence[Array], q: Sequence[Array], layout: Layout) -> Array:
    """Return the sum of the particles' contributions (P2G), [nodes, 4]."""
    footprint = Footprint(x, layout)
    w, at = footprint.weight(), footprint.row.ravel()
    empty = jnp.zeros(layout.nodes, w.dtype)
    add = lambda a: empty.at[at].add((w * a).ravel(), mode="promise_in_bounds")
    columns = [add(value) for value in _node_values(footprint, q)]
    return jnp.stack(columns + [empty] * (ROW - len(columns)), 1)


def g2p(x: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Return the moments of the grid at the particles (G2P), a list of [C, P]."""
    footprint, (first, rest) = Footprint(x, layout), layout.rows
    w, parts = footprint.weight(), [[] for _ in range(len(x) + 1)]
    for i in range(max(first, rest)):
        g = w * _gather_column(grid, i, footprint)
        found = [_sum_nodes(g, x[0])] * (i < first)
        slopes = [_sum_nodes(jnp.asarray(o * g), x[0]) for o in footprint.o if i < rest]
        # The barrier finishes a column before the next, so that only one is in memory.
        grid, found, slopes = lax.optimization_barrier((grid, found, slopes))
        for part, a in zip(parts, [found, *([a] for a in slopes)]):
            part.extend(a)
    return [a for part in parts for a in part]


def gradients(x: Sequence[Array], q: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Return D arrays [C, P], the derivative of sum_o w_o <g_o, Q_o> in each coordinate."""
    footprint = Footprint(x, layout)
    power = jnp.zeros(footprint.shape, grid.dtype)
    for i, value in enumerate(_node_values(footprint, q)):
        grid, power = lax.optimization_barrier(
            (grid, power + _gather_column(grid, i, footprint) * value)
        )
    return [_sum_nodes(footprint.weight(axis) * power, x[0]) for axis in range(len(x))]


def _node_values(footprint: Footprint, q: Sequence[Array]) -> list[Array]:
    """Return Q_o at each particle's nodes, one array per column of the grid."""
    parts = [[footprint.broadcast(a) for a in part] for part in footprint.layout.split(q)]
    count = len(parts[0])
    return [footprint.value([part[i] for part in parts if i < len(part)]) for i in range(count)]


def _gather_column(grid: Array, column: int, footprint: Footprint) -> Array:
    """Return a column of the grid at the nodes of each particle."""
    return grid[:, column].at[footprint.row].get(mode="promise_in_bounds")


def _sum_nodes(a: Array, like: Array) -> Array:
    """Sum over the nodes of each particle, [C, P]."""
    return a.sum(range(a.ndim - 1)).reshape(like.shape)
