"""Theoretical escape direction from a cluster: a tracer released at rest at a Lagrange point.

The cluster is a point mass on a circular orbit about a point-mass galaxy; G = 1. In rotating axes,
a body at rest next to the inner or outer Lagrange point drifts out along the point's unstable
direction, which depends only on the ratio of the tidal radius to the orbit's radius.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.physics.nbody.steps import Leapfrog
from jaxgpu.runs.loop import rollout

_BESIDE = 1e-3  # initial offset, in tidal radii
_TURNS, _STEPS = 2.0, 4000  # orbits, after which it is far away


def tail(gm: Array, place: Array, edge: Array | float, mass: Array | float, side: float) -> Array:
    """Return the direction [3] in which the tracer crosses the `edge`, in rotating axes.

    Args:
        gm: the galaxy's mass.
        place: radius of the orbit, m; the galaxy's centre is at -x.
        edge: radius at which the direction is taken.
        mass: mass of the cluster.
        side: -1 for the inner Lagrange point, 1 for the outer.
    """
    rate = jnp.sqrt(gm / place**3)
    point = side * _lagrange(gm / mass, place, side) * (1 + _BESIDE)
    x = jnp.array([1.0, 0, 0]) * point
    v = jnp.array([0, 1.0, 0]) * point * rate

    def pull(t: Array, x: Array) -> Array:
        home = place * jnp.array([jnp.cos(rate * t), jnp.sin(rate * t), 0])
        there = home + x
        tide = home / place**3 - there / jnp.linalg.norm(there) ** 3
        return gm * tide - mass * x / jnp.linalg.norm(x) ** 3

    spec = Leapfrog(pull, _TURNS * 2 * jnp.pi / rate / _STEPS, order=4)
    _, (t, x) = rollout(spec.step, spec.init(x, v), _STEPS, measure=lambda s: (spec.time(s), s.x))
    first = jnp.argmax(jnp.linalg.norm(x, axis=1) > edge)
    return rotate_z(x[first] / jnp.linalg.norm(x[first]), -rate * t[first])


def _lagrange(gm: Array, place: Array, side: float) -> Array:
    """Return the distance of the Lagrange point from a cluster of mass 1, by Newton's method."""
    d = (1 / (3 * gm)) ** (1 / 3) * place
    for _ in range(8):
        there = place + side * d
        force = gm * (there / place**3 - 1 / there**2) - side / d**2
        slope = side * gm * (1 / place**3 + 2 / there**3) + side * 2 / d**3
        d = d - force / slope
    return d


def rotate_z(x: Array, angle: Array) -> Array:
    """Rotate vectors [..., 3] about z by `angle`, radians."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2]], -1)
