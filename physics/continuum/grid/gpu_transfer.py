"""P2G and G2P transfers on a GPU: all particles in one batch, one row of the grid per node.

A row of four numbers is contiguous in memory and is added or loaded as a unit. P2G is one scatter,
whose updates are computed as they are added. G2P is one pass over the particles, node after node
within it. The functions are defined in `transfer`.
"""

from collections.abc import Sequence
from itertools import product
from math import prod

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .footprint import Footprint
from .stencil import ADD_ROWS, IN_BOUNDS, ROW, Layout, node_weights, stencil

_TAKE = lax.GatherDimensionNumbers(
    offset_dims=(2,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


def p2g(x: Sequence[Array], q: Sequence[Array], layout: Layout) -> Array:
    """Return the sum of the particles' contributions (P2G), [nodes, 4]."""
    footprint = Footprint(x, layout, ROW, fixed=True)
    # Select by index instead of stacking: a stack would be written to memory before the add.
    empty = jnp.zeros(footprint.shape, x[0].dtype)

    def row(part: list[Array]) -> Array:
        total = empty
        for i, a in enumerate(part):
            total = jnp.where(np.arange(ROW) == i, footprint.broadcast(a), total)
        return total

    update = footprint.weight() * footprint.value([row(part) for part in layout.split(q)])
    grid, at = jnp.zeros((layout.nodes, ROW), x[0].dtype), footprint.row[..., 0].reshape(-1, 1)
    return lax.scatter_add(grid, at, update.reshape(-1, ROW), ADD_ROWS, mode=IN_BOUNDS)


def g2p(x: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Return the moments of the grid at the particles (G2P), a list of [C, P]."""
    grid = lax.optimization_barrier(grid)
    row, f = stencil(x, layout.offsets(x[0].shape[0])[:, None], layout)
    w = [node_weights(a, n) for a, n in zip(f, layout.order)]

    # returns M_0 over the axes from `axis` on, then the first moment along each of them
    def gather_axis(axis: int, at: Array) -> list[list[Array]]:
        if axis == len(w):
            return [_gather_columns(grid, at)]
        steps = (np.int32(i * layout.strides[axis]) for i in range(3))
        inner = [gather_axis(axis + 1, at + step) for step in steps]
        inner = [[_scale_columns(a, m) for m in part] for a, part in zip(w[axis], inner)]
        slope = [b + 2 * c for b, c in zip(inner[1][0], inner[2][0])]
        plain = [[a + b + c for a, b, c in zip(*m)] for m in zip(*inner)]
        return [plain[0], slope, *plain[1:]]

    sizes = [layout.rows[0]] + [layout.rows[1]] * len(w)
    found = [a for m, n in zip(gather_axis(0, row), sizes) for a in m[:n]]
    return found


def gradients(x: Sequence[Array], q: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Return D arrays [C, P], the derivative of sum_o w_o <g_o, Q_o> in each coordinate."""
    row, f = stencil(x, layout.offsets(x[0].shape[0])[:, None], layout)
    w = [node_weights(a, n) for a, n in zip(f, layout.order)]
    dw = [node_weights(a, n + 1) for a, n in zip(f, layout.order)]
    first, *rest = layout.split(q)
    total = [jnp.zeros_like(x[0])] * len(x)
    for o in product(range(3), repeat=len(x)):
        g = _gather_columns(grid, row + np.int32(sum(i * s for i, s in zip(o, layout.strides))))
        power = sum(a * b for a, b in zip(g, first))
        for k, slope in zip(o, rest):
            power = power + k * sum(a * b for a, b in zip(g, slope))
        for axis in range(len(x)):
            u = [(dw if d == axis else w)[d][i] for d, i in enumerate(o)]
            total[axis] = total[axis] + prod(u) * power
    return total


def _scale_columns(a: Array, columns: list[Array]) -> list[Array]:
    return [a * b for b in columns]


def _gather_columns(grid: Array, at: Array) -> list[Array]:
    """Return the four columns of the grid at these rows, each shaped as `at`."""
    rows = lax.gather(grid, at[..., None], _TAKE, (1, ROW), mode=IN_BOUNDS)
    return [rows[..., i] for i in range(ROW)]
