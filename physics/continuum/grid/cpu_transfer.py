"""P2G and G2P transfers on a CPU: one cache-sized chunk of particles at a time.

Loops stay rolled, since only a loop's boundary keeps XLA from recomputing the weights for every
node (4-fold slower when unrolled). A particle costs 27 row updates (432 bytes) and about 300
operations in 3-D, in either direction. Chunks of empty slots have nothing to scatter and are
skipped. The functions are defined in `transfer`.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .stencil import ADD_ROWS, IN_BOUNDS, ROW, Layout, pad_rows, stencil, trim_rows, weights

STENCIL_WIDTH = np.int32(3)  # nodes that a particle touches along an axis
_TAKE = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


def p2g(x: Sequence[Array], q: Sequence[Array], layout: Layout) -> Array:
    """Return the sum of the particles' contributions (P2G), [nodes, 4]."""

    def add(grid, chunk):
        x, q, offset = chunk
        return _scatter_chunk(grid, x, q, offset, layout), None

    zero = jnp.zeros((layout.nodes, ROW), x[0].dtype)
    chunks = (list(x), list(q), layout.offsets(x[0].shape[0]))
    return lax.scan(add, zero, chunks)[0]


def g2p(x: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Return the moments of the grid at the particles (G2P), a list of [C, P]."""
    take = lambda chunk: _gather_chunk(grid, *chunk, layout=layout)
    return lax.map(take, (list(x), layout.offsets(x[0].shape[0])))


def gradients(x: Sequence[Array], q: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Return D arrays [C, P], the derivative of sum_o w_o <g_o, Q_o> in each coordinate."""

    def take(chunk):
        x, q, offset = chunk
        return _coordinate_gradients_chunk(grid, x, q, offset, layout)

    return lax.map(take, (list(x), list(q), layout.offsets(x[0].shape[0])))


def _loop_over_nodes(body, carry, count: Any = STENCIL_WIDTH):
    """Run `body(i, i as a float, carry)` for the three nodes along an axis, in a rolled loop."""
    dtype = carry[0].dtype if isinstance(carry, list) else carry.dtype
    iteration = lambda i, carry: body(i, i.astype(dtype), carry)
    return lax.fori_loop(np.int32(0), count, iteration, carry)


def _num_nodes(q: Sequence[Array]) -> Array:
    """Return the nodes to visit along the first axis, []: 3, or 0 if a chunk contributes none."""
    return jnp.where(jnp.any(jnp.stack(q) != 0), STENCIL_WIDTH, 0)


def _scatter_chunk(grid: Array, x, q, offset: Array, layout: Layout) -> Array:
    row, f = stencil(x, offset, layout)
    rows, count = pad_rows(q, layout), _num_nodes(q)
    w = [weights(fd, n) for fd, n in zip(f, layout.order)]

    # value: weighted Q_0 + i Q_1 + ... over the previous axes; slope: Q_d of the remaining axes
    def scatter_axis(axis, grid, row, value, slope):
        def node(i, k, grid):
            at = row + i * np.int32(layout.strides[axis])
            here = w[axis][i][None] * (value + k * slope[0])
            if axis == len(w) - 1:
                return lax.scatter_add(grid, at[:, None], here.T, ADD_ROWS, mode=IN_BOUNDS)
            return scatter_axis(axis + 1, grid, at, here, [w[axis][i][None] * s for s in slope[1:]])

        return _loop_over_nodes(node, grid, STENCIL_WIDTH if axis else count)

    return scatter_axis(0, grid, row, rows[0], rows[1:])


def _rows_at(grid: Array, row: Array) -> Array:
    return lax.gather(grid, row[:, None], _TAKE, (1, ROW), mode=IN_BOUNDS)


def _gather_chunk(grid: Array, x, offset: Array, layout: Layout) -> list[Array]:
    row, f = stencil(x, offset, layout)
    w = [weights(fd, n) for fd, n in zip(f, layout.order)]
    last = len(w) - 1

    # returns M_0 over the axes from `axis` on, then the first moment along each of them
    def gather_axis(axis, row):
        if axis == last:
            g = [w[axis][i][:, None] * _rows_at(grid, row + np.int32(i)) for i in range(3)]
            return [g[0] + g[1] + g[2], g[1] + 2 * g[2]]

        def node(i, k, total):
            inner = gather_axis(axis + 1, row + i * np.int32(layout.strides[axis]))
            inner = [w[axis][i][:, None] * m for m in inner]
            return [a + b for a, b in zip(total, [inner[0], k * inner[0], *inner[1:]])]

        zero = jnp.zeros((row.shape[0], ROW), grid.dtype)
        return _loop_over_nodes(node, [zero] * (last - axis + 2))

    return trim_rows([m.T for m in gather_axis(0, row)], layout)


def _coordinate_gradients_chunk(grid: Array, x, q, offset: Array, layout: Layout) -> list[Array]:
    row, f = stencil(x, offset, layout)
    rows, count = [part.T for part in pad_rows(q, layout)], _num_nodes(q)
    w = [weights(fd, n) for fd, n in zip(f, layout.order)]
    dw = [weights(fd, n + 1) for fd, n in zip(f, layout.order)]
    last = len(w) - 1

    # returns the sums of <g, Q>: with all weights, then with the weight of each axis differentiated
    def gradient_axis(axis, row, value):
        if axis == last:
            h = [_rows_at(grid, row + np.int32(i)) * (value + i * rows[-1]) for i in range(3)]
            return [
                u[axis][0][:, None] * h[0] + u[axis][1][:, None] * h[1] + u[axis][2][:, None] * h[2]
                for u in (w, dw)
            ]

        def node(i, k, total):
            at = row + i * np.int32(layout.strides[axis])
            inner = gradient_axis(axis + 1, at, value + k * rows[axis + 1])
            wi, di = w[axis][i][:, None], dw[axis][i][:, None]
            new = [wi * inner[0], di * inner[0], *(wi * m for m in inner[1:])]
            return [a + b for a, b in zip(total, new)]

        zero = jnp.zeros((row.shape[0], ROW), grid.dtype)
        return _loop_over_nodes(node, [zero] * (last - axis + 2), STENCIL_WIDTH if axis else count)

    return [part.sum(1) for part in gradient_axis(0, row, rows[0])[1:]]
