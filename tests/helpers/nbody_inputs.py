"""Bodies as users have them: unlike ones."""

import jax
import numpy as np

from jaxgpu.physics.nbody.models import plummer

_draw = jax.jit(plummer, static_argnums=1)


def masses(count, seed, total=1.0):
    """Masses [count], log-uniform over a factor of 100, of the given sum."""
    m = 100 ** np.random.default_rng(seed).uniform(size=count)
    return total * m / m.sum()


def sphere(seed, count):
    """States [6, count] of some of the 128 stars of a Plummer sphere: one program draws them."""
    return points(_draw(jax.random.key(seed), 128))[:, :count]


def points(bodies):
    """Positions over velocities [6, N] of bodies (x [N, 3], v [N, 3])."""
    x, v = bodies
    return np.concatenate([np.asarray(x).T, np.asarray(v).T])


def halves(points):
    """Positions and velocities [N, 3] of bodies [6, N], as public functions take them."""
    return points[:3].T, points[3:].T


def energy(points, m, softening=0.0):
    """Kinetic and potential energy of stars [6, N] of masses [N], summed in NumPy."""
    x, m = np.asarray(points), np.asarray(m)
    apart = np.linalg.norm(x[:3, :, None] - x[:3, None], axis=0) + np.diag(np.full(m.size, np.inf))
    depth = (m[:, None] * m / np.sqrt(apart**2 + softening**2)).sum()
    return (m * (x[3:] ** 2).sum(0)).sum() / 2, -depth / 2
