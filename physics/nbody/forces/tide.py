"""A cluster in the field of a galaxy, in a non-rotating frame that falls with the cluster.

The origin follows its own orbit in the field. Bodies are accelerated by the field at their position
minus the field at the origin. Their coordinates therefore stay as small as the cluster and lose no
digits to the size of the galaxy. The path of the origin over an interval is one Gauss-Radau step,
far shorter than an orbit; bodies with individual steps evaluate it at any moment.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree

from ..steps import radau
from ..steps.dense_output import DenseOutput
from . import potentials

_ROUNDS = 8  # fixed-point iterations; each multiplies the error by (omega dt)^2 / 5


@pytree
class Origin:
    """Position and velocity of the frame in the galaxy."""

    x: Array = number()  # [3] position from the galaxy's centre
    v: Array = number()  # [3] velocity


@pytree
class NoTide:
    """No external field."""

    def begin(self, like: Array) -> Origin:
        """Return a placeholder origin of zeros, in the dtype of `like`."""
        return Origin(jnp.zeros(3, like.dtype), jnp.zeros(3, like.dtype))

    def path(self, origin: Origin, interval: Any) -> Any:
        """Return an empty path, since there is no orbit to follow."""
        return ()

    def pull(self, path: Any, fraction: Array, points: Array) -> Array:
        """Return zeros [9, K]."""
        return jnp.zeros((9, points.shape[1]), points.dtype)

    def force(self, path: Any, fraction: Array, points: Array) -> Array:
        """Return zeros [6, K]."""
        return jnp.zeros_like(points)

    def move_origin(self, path: Any, origin: Origin) -> Origin:
        """Return the origin unchanged."""
        return origin


@pytree
class Tide:
    """External field that acts on a cluster and on the origin of its coordinates."""

    field: potentials.Field
    origin: Origin  # at the start

    def begin(self, like: Array) -> Origin:
        """Return the origin at the start, in the dtype of `like`."""
        x = ranges.numbers("Tide: origin.x", self.origin.x, (3,))
        v = ranges.numbers("Tide: origin.v", self.origin.v, (3,))
        return Origin(jnp.asarray(x, like.dtype), jnp.asarray(v, like.dtype))

    def path(self, origin: Origin, interval: Array | float) -> DenseOutput:
        """Return the path of the origin over an interval."""
        dt = jnp.asarray(interval, origin.x.dtype)
        x, v = origin.x[None], origin.v[None]
        force = lambda first, x, v: self.field.pull(x)
        guess = jnp.broadcast_to(force(0, x[None], v[None]), (8, 1, 3))
        a, _ = radau.solve(force, x, v, dt, guess, _ROUNDS)
        return DenseOutput(x=x[None], v=v[None], a=a[None], dt=dt)

    def pull(self, path: DenseOutput, fraction: Array, points: Array) -> Array:
        """Return acceleration, jerk and snap [9, K] relative to the origin.

        Args:
            path: path of the origin over the interval.
            fraction: elapsed fraction [] of the interval.
            points: positions, velocities and accelerations [9, K] relative to the origin.
        """
        x, v = (q[0, 0] for q in path.evaluate(fraction[None]))
        a = self.field.pull(x)
        here = jnp.concatenate([x, v, a])[:, None]
        # The origin is one of the points, so that a body at rest there has zero acceleration
        # exactly; rounding differences between two expressions would make steps ever shorter.
        at = jnp.concatenate([points + here, here], 1)
        by_field = potentials.pull_derivatives(self.field, at[:3].T, at[3:6].T, at[6:].T)
        columns = jnp.concatenate([q.T for q in by_field])
        return columns[:, :-1] - columns[:, -1:]

    def force(self, path: DenseOutput, fraction: Array, points: Array) -> Array:
        """Return acceleration and jerk [6, K] relative to the origin, at `points` [6, K]."""
        still = jnp.zeros_like(points[:3])
        return self.pull(path, fraction, jnp.concatenate([points, still]))[:6]

    def move_origin(self, path: DenseOutput, origin: Origin) -> Origin:
        """Return the origin at the end of the interval."""
        x, v = path.evaluate(jnp.ones(1, origin.x.dtype))
        return Origin(x[0, 0], v[0, 0])
