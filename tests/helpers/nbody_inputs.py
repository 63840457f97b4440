"""Bodies as users have them: unlike ones."""

import numpy as np


def masses(count, seed, total=1.0):
    """Masses [count], log-uniform over a factor of 100, of the given sum."""
    m = 100 ** np.random.default_rng(seed).uniform(size=count)
    return total * m / m.sum()


def points(bodies):
    """Positions over velocities [6, N] of bodies (x [N, 3], v [N, 3])."""
    x, v = bodies
    return np.concatenate([np.asarray(x).T, np.asarray(v).T])


def halves(points):
    """Positions and velocities [N, 3] of bodies [6, N], as public functions take them."""
    return points[:3].T, points[3:].T
