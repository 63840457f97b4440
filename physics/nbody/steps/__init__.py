"""Time integrators for any force, independent of the bodies.

Read `leapfrog` first; then `radau` (the implicit step of order 15), `kahan` (compensated sums) and
`dense_output` (several steps as polynomials in time).
"""

from . import dense_output, kahan, leapfrog, radau
from .dense_output import DenseOutput
from .leapfrog import Leapfrog

__all__ = ["DenseOutput", "Leapfrog", "dense_output", "kahan", "leapfrog", "radau"]
