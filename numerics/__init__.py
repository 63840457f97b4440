"""Special functions and the distributions that rest on them.

Reading order: `bessel` has the logarithms of Bessel functions and their kin, `sphere` the
distributions of directions above them, `covariance` the Matern covariance; `arguments` says how all
are given numbers.
"""

from . import bessel, sphere
from .bessel import *
from .covariance import matern
from .sphere import *

__all__ = ["matern"]
__all__ += bessel.__all__
__all__ += sphere.__all__
