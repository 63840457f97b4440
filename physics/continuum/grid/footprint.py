"""Contributions of particles to the nodes that they touch, as one array expression.

Arrays are [3, .., 3, N], with one axis of three nodes per axis of space. No such array need ever
be in memory: in a sum, the compiler computes each entry in passing.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .stencil import Layout, stencil, weight


class Footprint:
    """The 3^D nodes of each of N particles: their rows, weights and contributions.

    With `tpu_transfer`, arrays have one more axis for so many columns of the grid. Node offsets are
    constants if `fixed`: on a GPU each expression would be a launch, on a TPU each constant an
    array in memory.
    """

    def __init__(self, x: Sequence[Array], layout: Layout, columns: int = 0, fixed: bool = False):
        row, f = stencil(x, layout.offsets(x[0].shape[0])[:, None], layout)
        self.layout, self.d = layout, len(x)
        self.shape = (3,) * self.d + (row.size,) + (columns,) * bool(columns)
        self.f = [self.broadcast(a) for a in f]
        number = self._constant_offsets if fixed else self._computed_offsets
        o = [number(axis) for axis in range(self.d)]
        steps = [a * np.int32(stride) for a, stride in zip(o, layout.strides)]
        self.o = [a.astype(x[0].dtype) for a in o]
        self.row = sum(steps, self.broadcast(row))  # of the grid, of each node

    def _computed_offsets(self, axis: int) -> Array:
        return lax.broadcasted_iota(jnp.int32, self.shape, axis)

    def _constant_offsets(self, axis: int) -> np.ndarray:
        shape = [3 if i == axis else 1 for i in range(len(self.shape))]
        return np.arange(3, dtype=np.int32).reshape(shape)

    def broadcast(self, a: Array) -> Array:
        """Broadcast values of particles [C, P] to each of their nodes."""
        return lax.broadcast_in_dim(a.ravel(), self.shape, (self.d,))

    def weight(self, raised: int | None = None) -> Array:
        """Return the product of all axes' weights, with one more derivative along `raised`."""
        total = jnp.ones_like(self.f[0])
        for axis, (f, o, order) in enumerate(zip(self.f, self.o, self.layout.order)):
            total = total * weight(f, o, order + (axis == raised))
        return total

    def value(self, parts: Sequence[Array]) -> Array:
        """Return Q_0 + sum_d o_d Q_d."""
        total, *slopes = parts
        for o, slope in zip(self.o, slopes):
            total = total + o * slope
        return total
