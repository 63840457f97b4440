"""Differences from constants that are not floats: the constant is a sum of two floats.

The optima of the test problems have digits that float32 lacks. The difference between a point and
the float nearest to the constant differs from the exact one: near the optimum it has no correct
digit, and it is 0 at a point that is not optimal.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array


def subtract(x: Array, constant: np.ndarray) -> Array:
    """Return x minus the constant, to the last digits of x's type even if they are nearly equal.

    >>> float(subtract(jnp.float32(0.35), np.array(0.35))), float(np.float32(0.35)) - 0.35
    (-5.9604645663569045e-09, -5.960464455334602e-09)
    """
    high = np.asarray(constant, x.dtype)
    low = np.asarray(constant - high.astype(float), x.dtype)
    return (x - jnp.asarray(high)) - jnp.asarray(low)
