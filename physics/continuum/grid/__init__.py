"""The grid, and the transfers between it and particles (P2G and G2P).

To read: `grid` (the box and its faces), `stencil` (splines and layouts), `transfer` (what spreading
and gathering mean, and their derivatives), `chunked`, `rows` and `columns` (how, on a CPU, on a GPU
and on a TPU; the latter two with `footprint`), `every` (work on particles alone), `sparse` (work on
nodes with mass alone), `volume` (how full the grid is).
"""

from .grid import Grid
from .transfer import moments, spread

__all__ = ["Grid", "moments", "spread"]
