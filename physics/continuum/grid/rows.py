"""Transfers between particles and grid on a GPU: all particles at once, a row of the grid each.

A row of four numbers lies together in memory, and is added or taken together. To spread is one
scatter, whose updates are computed as they are added; to gather is one pass over the particles, a
node after the other within it. The functions' meaning is in `transfer`.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .reach import Reach
from .stencil import ROW, Layout, pieces, stencil

_IN_BOUNDS = lax.GatherScatterMode.PROMISE_IN_BOUNDS
_ADD = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)
_TAKE = lax.GatherDimensionNumbers(
    offset_dims=(2,), collapsed_slice_dims=(0,), start_index_map=(0,)
)


def spread(x: Sequence[Array], q: Sequence[Array], layout: Layout) -> Array:
    """Sum of the particles' contributions, [nodes, 4]."""
    reach = Reach(x, layout)
    w = reach.weight()
    columns = [w * value for value in reach.values(q)]
    columns += [jnp.zeros_like(w)] * (ROW - len(columns))
    # chosen by number and not stacked: a stack would be written to memory before it is added
    wide, last = (*reach.shape, ROW), len(reach.shape)
    which = lax.broadcasted_iota(jnp.int32, wide, last)
    update = lax.select_n(which, *(lax.broadcast_in_dim(a, wide, range(last)) for a in columns))
    grid, at = jnp.zeros((layout.nodes, ROW), w.dtype), reach.row.reshape(-1, 1)
    return lax.scatter_add(grid, at, update.reshape(-1, ROW), _ADD, mode=_IN_BOUNDS)


def moments(x: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Moments of the grid at the particles, a list of [C, P]."""
    row, f = stencil(x, layout.offsets(x[0].shape[0])[:, None], layout)
    w = [pieces(a, n) for a, n in zip(f, layout.order)]
    m = [[jnp.zeros_like(x[0])] * n for n in (layout.rows[0], *layout.rows[1:] * len(x))]
    for o, g in _nodes(grid, row, layout):
        weight = prod(a[i] for a, i in zip(w, o))
        for part, k in zip(m, (1, *o)):
            part[:] = [a + k * (weight * b) for a, b in zip(part, g)] if k else part
    return [a for part in m for a in part]


def slopes(x: Sequence[Array], q: Sequence[Array], grid: Array, layout: Layout) -> list[Array]:
    """Derivative of sum_o w_o <g_o, Q_o> in each coordinate, a list of D arrays [C, P]."""
    row, f = stencil(x, layout.offsets(x[0].shape[0])[:, None], layout)
    w = [pieces(a, n) for a, n in zip(f, layout.order)]
    dw = [pieces(a, n + 1) for a, n in zip(f, layout.order)]
    first, *rest = layout.split(q)
    total = [jnp.zeros_like(x[0])] * len(x)
    for o, g in _nodes(grid, row, layout):
        power = sum(a * b for a, b in zip(g, first))
        for k, slope in zip(o, rest):
            power = power + k * sum(a * b for a, b in zip(g, slope))
        for axis in range(len(x)):
            u = [(dw if d == axis else w)[d][i] for d, i in enumerate(o)]
            total[axis] = total[axis] + prod(u) * power
    return total


def _nodes(
    grid: Array, row: Array, layout: Layout
) -> Iterator[tuple[tuple[int, ...], list[Array]]]:
    """Offset of each node that a particle touches, and its four columns of the grid [C, P]."""
    for o in product(range(3), repeat=len(layout.shape)):
        at = row + np.int32(sum(i * s for i, s in zip(o, layout.strides)))
        g = lax.gather(grid, at[..., None], _TAKE, (1, ROW), mode=_IN_BOUNDS)
        yield o, [g[..., i] for i in range(ROW)]
