"""Massive bodies over a span of time, as polynomials that can be evaluated at any moment.

Tracers move in this dense output. They are pulled by the massive bodies but do not pull them, so
the massive bodies are advanced first. Each of the S equal steps stores the state at its start and
the accelerations at its Gauss-Radau nodes. Between the nodes it is as accurate as at them.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import pytree

from . import radau


@pytree
class DenseOutput:
    """Trajectories of N bodies over S steps of length `dt`.

    >>> import dataclasses
    >>> [field.name for field in dataclasses.fields(DenseOutput)]
    ['x', 'v', 'a', 'dt']
    """

    x: Array  # [S, N, 3] position at the start of each step, length
    v: Array  # [S, N, 3] velocity there, length per time
    a: Array  # [S, 8, N, 3] acceleration at the nodes of each step
    dt: Array  # [] length of a step, time

    def evaluate(self, fraction: Array) -> tuple[Array, Array]:
        """Return positions and velocities [K, N, 3] at `fraction` [K], 0 (start) to 1 (end)."""
        steps = self.x.shape[0]
        place = fraction * steps
        s = jnp.clip(place.astype(jnp.int32), 0, steps - 1)
        h = place - s.astype(place.dtype)
        k = np.arange(1, 9)
        powers = jnp.stack([h ** int(n) for n in k])  # h, h^2, ... h^8: [8, K]
        first = radau.apply_weights((radau.LAGRANGE / k[:, None]).T, powers)  # [8, K] by node
        second = radau.apply_weights((radau.LAGRANGE / (k * (k + 1))[:, None]).T, powers * h[None])
        a = jnp.moveaxis(self.a[s], 0, 1)  # [8, K, N, 3]
        dt = self.dt
        x = self.x[s] + dt * (
            h[:, None, None] * self.v[s] + dt * jnp.sum(_expand_axes(second, a) * a, 0)
        )
        return x, self.v[s] + dt * jnp.sum(_expand_axes(first, a) * a, 0)


def _expand_axes(weights: Array, a: Array) -> Array:
    return weights.reshape(weights.shape + (1,) * (a.ndim - weights.ndim))
