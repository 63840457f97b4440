"""The grid, and the P2G and G2P transfers between it and the particles.

To read: `grid` (the box and its faces), `stencil` (splines and layouts), `transfer` (definitions of
the transfers and their derivatives), `chunked`, `rows` and `columns` (kernels for CPU, GPU and TPU;
the latter two use `footprint`), `every` (work per particle), `sparse` (work on nodes with mass),
`volume` (volume excess of the material on the grid).
"""

from .grid import Grid
from .transfer import moments, spread

__all__ = ["Grid", "moments", "spread"]
