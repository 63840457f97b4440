"""The way out of a cluster by theory: a tracer that leaves a Lagrange point at rest.

The cluster is a point of mass on a circle about a galaxy that is a point; G = 1. In axes that
turn, a body beside the inner or the outer Lagrange point at rest drifts out along the point's
unstable direction, which has no parameter but the ratio of the tidal radius to the orbit's.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.physics.nbody.steps import Leapfrog
from jaxgpu.runs.loop import rollout

_BESIDE = 1e-3  # of the tidal radius, where it begins
_TURNS, _STEPS = 2.0, 4000  # of the orbit, by when it is far beyond


def tail(gm: Array, place: Array, edge: Array | float, mass: Array | float, side: float) -> Array:
    """The direction [3] in which it crosses the `edge`, in axes that turn with the orbit.

    Args:
        gm: the galaxy's mass.
        place: radius of the circle, m; the galaxy's centre lies at -x.
        edge: where the direction is taken.
        mass: of the cluster.
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
    return about_z(x[first] / jnp.linalg.norm(x[first]), -rate * t[first])


def _lagrange(gm: Array, place: Array, side: float) -> Array:
    """Distance of the Lagrange point from a cluster of mass 1, by Newton's method."""
    d = (1 / (3 * gm)) ** (1 / 3) * place
    for _ in range(8):
        there = place + side * d
        force = gm * (there / place**3 - 1 / there**2) - side / d**2
        slope = side * gm * (1 / place**3 + 2 / there**3) + side * 2 / d**3
        d = d - force / slope
    return d


def about_z(x: Array, angle: Array) -> Array:
    """Vectors [..., 3] turned about z by `angle`, radians."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[..., 0] - s * x[..., 1], s * x[..., 0] + c * x[..., 1], x[..., 2]], -1)
