"""What particles give to the nodes that they touch, as one expression over particles and nodes.

Arrays are [3, .., 3, N], an axis of nodes for each of the D of space. No such array need ever be
in memory: where it is added up, a compiler computes each entry in passing.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .stencil import Layout, pieces, stencil


class Reach:
    """The 3^D nodes of each of N particles: their rows, weights, and what they are given."""

    def __init__(self, x: Sequence[Array], layout: Layout):
        row, f = stencil(x, layout.offsets(x[0].shape[0])[:, None], layout)
        self.layout = layout
        self.shape = (3,) * len(x) + (row.size,)
        self.f = [self.repeated(a) for a in f]
        self.o = [lax.broadcasted_iota(jnp.int32, self.shape, axis) for axis in range(len(x))]
        steps = [o * np.int32(stride) for o, stride in zip(self.o, layout.strides)]
        self.row = sum(steps, self.repeated(row))  # of each node in the grid

    def repeated(self, a: Array) -> Array:
        """Values of particles [C, P], the same at each of their nodes."""
        return lax.broadcast_in_dim(a.ravel(), self.shape, (len(self.shape) - 1,))

    def weight(self, raised: int | None = None) -> Array:
        """Product of the weights along all axes, with one more derivative along `raised`."""
        total = jnp.ones_like(self.f[0])
        for axis, (f, o, order) in enumerate(zip(self.f, self.o, self.layout.order)):
            total = total * lax.select_n(o, *pieces(f, order + (axis == raised)))
        return total

    def values(self, q: Sequence[Array]) -> list[Array]:
        """Columns of Q_o = Q_0 + sum_d o_d Q_d, as many as Q_0 has."""
        first, *slopes = self.layout.split(q)
        columns = [self.repeated(a) for a in first]
        for o, slope in zip(self.o, slopes):
            k = o.astype(columns[0].dtype)
            for i, a in enumerate(slope):
                columns[i] = columns[i] + k * self.repeated(a)
        return columns
