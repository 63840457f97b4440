"""The grid, and the P2G and G2P transfers between it and the particles.

To read: `grid` (the box and its faces), `stencil` (splines and layouts), `transfer` (definitions of
the transfers and their derivatives), `cpu_transfer`, `gpu_transfer` and `tpu_transfer` (kernels for
CPU, GPU and TPU; the latter two use `footprint`), `particle_map` (work per particle), `sparse`
(work on nodes with mass), `volume` (volume excess of the material on the grid).
"""

from .grid import Grid
from .transfer import g2p, p2g

__all__ = ["Grid", "g2p", "p2g"]
