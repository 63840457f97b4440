"""Stencils: the grid nodes that a particle touches, and their weights, quadratic B-splines.

A particle at grid coordinate x touches the three nodes from b = floor(x - 1/2) along each axis;
f = x - b is in [0.5, 1.5). Steffen, Kirby & Berzins (2008), doi:10.1002/nme.2360, eq. 20.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

ROW = 4  # numbers in a grid row: one 128-bit word in float32
# parameters of scatters that add rows to a grid [nodes, ROW]
IN_BOUNDS = lax.GatherScatterMode.PROMISE_IN_BOUNDS
ADD_ROWS = lax.ScatterDimensionNumbers(
    update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
)


@dataclass(frozen=True)
class Layout:
    """Static parameters of a transfer; hashable, so that it can be a parameter of a primitive.

    `gpu_transfer` are the lengths of the rows of Q_0 and of the slopes Q_1..Q_D; the rest of a row
    is zero.
    """

    batch: int  # number of stacked grids, among which chunks divide evenly
    shape: tuple[int, ...]  # nodes along each axis
    rows: tuple[int, int]  # lengths of the rows of Q_0 and of its slopes
    order: tuple[int, ...]  # order of the derivative of the weight along each axis

    @property
    def nodes(self) -> int:
        """Number of rows of the grid array, over all stacked grids."""
        return self.batch * prod(self.shape)

    @property
    def count(self) -> int:
        """Number of arrays that make up Q: the rows of Q_0, then of each slope."""
        return self.rows[0] + len(self.shape) * self.rows[1]

    @property
    def strides(self) -> list[int]:
        """Number of rows between neighbours along each axis."""
        return [prod(self.shape[d + 1 :]) for d in range(len(self.shape))]

    def raise_order(self, axis: int) -> "Layout":
        """Return the layout with one more derivative along `axis`."""
        return replace(self, order=tuple(n + (d == axis) for d, n in enumerate(self.order)))

    def split(self, flat: Sequence[Array]) -> list[list[Array]]:
        """Split a flat list of arrays into Q_0, Q_1, ..., each a list of rows."""
        first, rest = self.rows
        starts = [0] + [first + d * rest for d in range(len(self.shape))]
        sizes = [first] + [rest] * len(self.shape)
        return [list(flat[a : a + n]) for a, n in zip(starts, sizes)]

    def offsets(self, chunks: int) -> Array:
        """Return the first row of each chunk's grid, [C] int32."""
        starts = np.arange(self.batch) * prod(self.shape)
        return jnp.asarray(np.repeat(starts, chunks // self.batch), jnp.int32)


def weights(f: Array, order: int) -> Array:
    """Return the quadratic B-spline [3, P] at three nodes, for particles at f [P] in [0.5, 1.5).

    With `order`, return the derivative of that order in f, which vanishes from the third on.

    >>> weights(jnp.array([1.0]), 0).ravel()
    Array([0.125, 0.75 , 0.125], dtype=float32)
    """
    return jnp.stack(node_weights(f, order))


def node_weights(f: Array, order: int) -> tuple[Array, Array, Array]:
    """Return the three `weights` as separate arrays."""
    if order == 0:
        return 0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2
    if order == 1:
        return f - 1.5, -2 * (f - 1), f - 0.5
    if order == 2:
        one = jnp.ones_like(f)
        return one, -2 * one, one
    zero = jnp.zeros_like(f)
    return zero, zero, zero


def weight(f: Array, o: Array | np.ndarray, order: int) -> Array:
    """Return the entry of `weights` for node o, floats 0, 1 or 2 in the precision of f.

    Arithmetic replaces a choice: a compiler would make the choice a table, or keep all three.

    >>> weight(jnp.array([1.0, 1.0, 1.0]), np.arange(3, dtype=np.float32), 0)
    Array([0.125, 0.75 , 0.125], dtype=float32)
    """
    t, side = f - o, o - 1
    outer = side * side  # 1 at the outer two nodes, 0 at the middle node
    if order == 0:
        return jnp.asarray(outer * (0.5 * (1.5 + side * t) ** 2) + (1 - outer) * (0.75 - t * t))
    if order == 1:
        return jnp.asarray(side * (1.5 + side * t) - (1 - outer) * (2 * t))
    if order == 2:
        return jnp.broadcast_to(3 * outer - 2, f.shape)
    return jnp.zeros_like(f)


def base_node(x: Array, nodes: int) -> Array:
    """Return the first of the three nodes that a particle at grid coordinate x touches, as a float.

    It is clipped to the grid, so that a lost particle (or NaN) never accesses other memory.
    """
    return jnp.clip(jnp.floor(jnp.where(jnp.isnan(x), 0, x) - 0.5), 0, nodes - 3)


def stencil(x: Sequence[Array], offset: Array, layout: Layout) -> tuple[Array, list[Array]]:
    """Return the row of each particle's base node, and positions f relative to it per axis."""
    row, f = jnp.broadcast_to(offset, x[0].shape), []
    for xd, n, stride in zip(x, layout.shape, layout.strides):
        b = base_node(xd, n)
        row = row + b.astype(jnp.int32) * np.int32(stride)
        f.append(xd - b)
    return row, f


def pad_rows(q: Sequence[Array], layout: Layout) -> list[Array]:
    """Return Q_0, Q_1, ... as full grid rows, each [4, ...]."""
    empty = jnp.zeros_like(q[0])
    return [jnp.stack(part + [empty] * (ROW - len(part))) for part in layout.split(q)]


def trim_rows(m: Sequence[Array], layout: Layout) -> list[Array]:
    """Drop the padding rows that `pad_rows` added; return the rows of `layout` as a flat list."""
    sizes = [layout.rows[0]] + [layout.rows[1]] * len(layout.shape)
    return [part[r] for part, n in zip(m, sizes) for r in range(n)]
