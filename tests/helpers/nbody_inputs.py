"""Typical bodies of users: unequal masses, and known orbits."""

import jax
import numpy as np

from jaxgpu.physics.nbody.models import plummer

_draw = jax.jit(plummer, static_argnums=1)


def figure_eight():
    """Return equal masses, period 6.32591398 (Chenciner & Montgomery 2000, doi:10.2307/2661357)."""
    x = np.array([[0.97000436, -0.24308753, 0], [-0.97000436, 0.24308753, 0], [0, 0, 0]])
    v = np.array([-0.93240737, -0.86473146, 0])
    return x, np.array([-v / 2, -v / 2, v]), np.ones(3)


def pythagorean():
    """Return masses 3, 4, 5 at rest (Burrau 1913; Szebehely & Peters 1967, doi:10.1086/110355)."""
    x = np.array([[1.0, 3, 0], [-2, -1, 0], [1, -1, 0]])
    return x, np.zeros((3, 3)), np.array([3.0, 4.0, 5.0])


def masses(count, seed, total=1.0):
    """Return masses [count], log-uniform over a factor of 100, with the given sum."""
    m = 100 ** np.random.default_rng(seed).uniform(size=count)
    return total * m / m.sum()


def sphere(seed, count):
    """Return states [6, count] of some of 128 Plummer stars, sampled by one program."""
    return points(_draw(jax.random.key(seed), 128))[:, :count]


def points(bodies):
    """Return positions over velocities [6, N] of bodies (x [N, 3], v [N, 3])."""
    x, v = bodies
    return np.concatenate([np.asarray(x).T, np.asarray(v).T])


def halves(points):
    """Return positions and velocities [N, 3] of bodies [6, N], as public functions take them."""
    return points[:3].T, points[3:].T


def energy(points, m, softening=0.0):
    """Return kinetic and potential energy of stars [6, N] of masses [N], summed in NumPy."""
    x, m = np.asarray(points), np.asarray(m)
    apart = np.linalg.norm(x[:3, :, None] - x[:3, None], axis=0) + np.diag(np.full(m.size, np.inf))
    depth = (m[:, None] * m / np.sqrt(apart**2 + softening**2)).sum()
    return (m * (x[3:] ** 2).sum(0)).sum() / 2, -depth / 2
