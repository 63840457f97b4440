"""Differences from constants that are no floats: the constant is a sum of two floats.

The best values of the test problems have digits that float32 has not. The difference of a point
from the nearest float is not that from the constant: near the optimum it has no right digit, and
is 0 where the point is not the best one.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array


def away(x: Array, constant: np.ndarray) -> Array:
    """x less the constant, to the last digits of x's type also where they are nearly equal.

    >>> float(away(jnp.float32(0.35), np.array(0.35))), float(np.float32(0.35)) - 0.35
    (-5.9604645663569045e-09, -5.960464455334602e-09)
    """
    high = np.asarray(constant, x.dtype)
    low = np.asarray(constant - high.astype(float), x.dtype)
    return (x - jnp.asarray(high)) - jnp.asarray(low)
