"""Bodies as users have them: unlike ones."""

import numpy as np


def masses(count, seed, total=1.0):
    """Masses [count], log-uniform over a factor of 100, of the given sum."""
    m = 100 ** np.random.default_rng(seed).uniform(size=count)
    return total * m / m.sum()
