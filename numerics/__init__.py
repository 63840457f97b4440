"""Special functions and probability distributions on the sphere.

Reading order: `bessel` has the logarithms of Bessel functions and related functions, `sphere` the
distributions of directions built on them, and `covariance` the Matern covariance. `arguments`
converts the inputs of all of them.
"""

from . import bessel, sphere
from .bessel import *
from .covariance import matern
from .sphere import *

__all__ = ["matern"]
__all__ += bessel.__all__
__all__ += sphere.__all__
