"""Transfers between particles and grid on an accelerator: all particles at once.

The last axis is contiguous, so its three nodes are one window of 12 numbers and a particle
costs 9 windowed updates in 3-D instead of 27. The functions' meaning is in `transfer`.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .stencil import ROW, Layout, padded, stencil, trimmed, weights

_IN_BOUNDS = lax.GatherScatterMode.PROMISE_IN_BOUNDS
_ADD = lax.ScatterDimensionNumbers(
    update_window_dims=(1, 2), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
)
_TAKE = lax.GatherDimensionNumbers(
    offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,)
)


def spread(x: Sequence[Array], q: Sequence[Array], layout: Layout) -> Array:
    """Sum of the particles' contributions, [nodes, 4]."""
    row, w, _ = _flat(x, layout)
    rows = [part.T for part in padded([a.ravel() for a in q], layout)]  # each [N, 4]
    grid = jnp.zeros((layout.nodes, ROW), x[0].dtype)
    for o, at in _lines(row, layout):
        value = rows[0] + sum(i * rows[d + 1] for d, i in enumerate(o))
        line = jnp.stack([value + k * rows[-1] for k in range(3)], 1)  # [N, 3, 4]
        factor = _product(w, o)[:, None] * w[-1].T
        update = factor[:, :, None] * line
        grid = lax.scatter_add(grid, at[:, None], update, _ADD, mode=_IN_BOUNDS)
    return grid


def moments(x: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Moments of the grid at the particles, a list of [C, P]."""
    row, w, _ = _flat(x, layout)
    zero = jnp.zeros((row.shape[0], ROW), grid.dtype)
    m = [zero] * (len(x) + 1)
    for o, at in _lines(row, layout):
        line = (_product(w, o)[:, None] * w[-1].T)[:, :, None] * _window(grid, at)
        plain = line.sum(1)
        new = [plain, *(i * plain for i in o), line[:, 1] + 2 * line[:, 2]]
        m = [a + b for a, b in zip(m, new)]
    return [a.reshape(x[0].shape) for a in trimmed([a.T for a in m], layout)]


def slopes(x: Sequence[Array], q: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Derivative of sum_o w_o <g_o, Q_o> in each coordinate, a list of D arrays [C, P]."""
    row, w, dw = _flat(x, layout)
    rows = [part.T for part in padded([a.ravel() for a in q], layout)]
    total = [jnp.zeros_like(row, grid.dtype)] * len(x)
    for o, at in _lines(row, layout):
        value = rows[0] + sum(i * rows[d + 1] for d, i in enumerate(o))
        g = _window(grid, at)
        h = jnp.stack([(g[:, k] * (value + k * rows[-1])).sum(1) for k in range(3)])  # [3, N]
        for axis in range(len(x)):
            u = [dw[d] if d == axis else w[d] for d in range(len(x))]
            total[axis] = total[axis] + _product(u, o) * (u[-1] * h).sum(0)
    return [a.reshape(x[0].shape) for a in total]


def _flat(x: Sequence[Array], layout: Layout) -> tuple[Array, list[Array], list[Array]]:
    """Base row [N], weights and their derivatives [3, N] along each axis."""
    row, f = stencil(x, layout.offsets(x[0].shape[0])[:, None], layout)
    f = [a.ravel() for a in f]
    w = [weights(a, n) for a, n in zip(f, layout.order)]
    return row.ravel(), w, [weights(a, n + 1) for a, n in zip(f, layout.order)]


def _lines(row: Array, layout: Layout) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Offsets over all axes but the last, each with the rows where its line of nodes starts."""
    for o in product(range(3), repeat=len(layout.shape) - 1):
        yield o, row + np.int32(sum(i * s for i, s in zip(o, layout.strides)))


def _product(w: Sequence[Array], o: tuple[int, ...]) -> Array:
    """Weight of a line of nodes, over all axes but the last, [N]."""
    total = jnp.ones_like(w[0][0])
    for d, i in enumerate(o):
        total = total * w[d][i]
    return total


def _window(grid: Array, at: Array) -> Array:
    return lax.gather(grid, at[:, None], _TAKE, (3, ROW), mode=_IN_BOUNDS)
