"""Volume excess of the material on the grid, from which liquids correct their volume.

The volume ratio J of a liquid is integrated from velocity gradients, so that errors persist. The
grid has an independent measure: with the rest volume V that was scattered to a node, and the
minimum phi_min of phi over the node and its neighbours,

    phi = V / dx^D,   e = max(phi - 1, 0) + min(phi - 1 + (1 - phi_min)^4, 0)

e > 0 detects liquid that is too dense, e < 0 voids. A free surface or a tool that cuts the spline
of a node also leaves it less than full, but its neighbour far emptier: next to a plane at any
distance 1 - phi is below (1 - phi_min)^4, so that e = 0. Faces of the box mirror phi.
The aim is that of Kugelstadt et al. (2021), doi:10.1109/TVCG.2019.2947437, who project onto it by
a linear solve; here the liquid's own pressure does it.
"""

from math import prod

import jax.numpy as jnp
from jax import Array

from .grid import Grid


def volume_excess(volume: Array, grid: Grid) -> Array:
    """Return e of every node, [nodes]: the relative excess of rest volume over the node's cell.

    volume: [nodes] rest volume that was scattered there, m^3 (m^2 in 2-D).
    Differentiable, piecewise.

    >>> grid = Grid(0.5, (3, 3))
    >>> full = jnp.zeros(grid.shape).at[2:-2, 2:-2].set(0.25).at[2].mul(0.5).at[-3].mul(0.5)
    >>> full = full.at[:, 2].mul(0.5).at[:, -3].mul(0.5)  # nodes on faces have half a cell
    >>> e = volume_excess(full.at[3, 3].mul(1.1).ravel(), grid).reshape(grid.shape)
    >>> round(float(e[3, 3]), 3), float(abs(e[4]).max())
    (0.1, 0.0)
    """
    phi = grid.mirror_field(volume / grid.dx ** len(grid.cells))
    least, n = phi, phi.shape[0]
    for stride in (prod(grid.shape[i + 1 :]) for i in range(len(grid.shape))):
        # in flat order the last row has a wrong neighbour; no particle ever touches it
        wide = jnp.pad(least, stride, constant_values=1)
        before, after = wide[:n], wide[2 * stride :]
        least = jnp.minimum(least, jnp.minimum(before, after))
    gap = jnp.maximum(1 - least, 0)
    return jnp.maximum(phi - 1, 0) + jnp.minimum(phi - 1 + (gap * gap) ** 2, 0)
