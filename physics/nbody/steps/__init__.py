"""Steps in time that know nothing of what is moved.

Read `leapfrog` first; then `radau`, the implicit step of order 15, `kahan`, the sum that keeps its
roundings, and `dense_output`, a stretch of steps as polynomials.
"""

from . import dense_output, kahan, leapfrog, radau
from .dense_output import DenseOutput
from .leapfrog import Leapfrog

__all__ = ["DenseOutput", "Leapfrog", "dense_output", "kahan", "leapfrog", "radau"]
