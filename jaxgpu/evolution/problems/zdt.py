"""ZDT1-4 and 6, two objectives.

Zitzler, Deb & Thiele (2000), doi:10.1162/106365600568202. ZDT5, on bit strings, is left out.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution.problem import Box, Problem, box


def zdt1(variables: int = 30) -> Problem:
    """Convex front f2 = 1 - sqrt(f1).

    >>> print(zdt1().function(jnp.zeros(30)))
    [0. 1.]
    """

    def function(x: Array) -> Array:
        g = _mean(x)
        return jnp.stack([x[0], g * (1 - jnp.sqrt(x[0] / g))])

    return Problem(box(0.0, 1.0, variables), function, 2)


def zdt2(variables: int = 30) -> Problem:
    """Concave front f2 = 1 - f1^2."""

    def function(x: Array) -> Array:
        g = _mean(x)
        return jnp.stack([x[0], g * (1 - (x[0] / g) ** 2)])

    return Problem(box(0.0, 1.0, variables), function, 2)


def zdt3(variables: int = 30) -> Problem:
    """Five disconnected pieces."""

    def function(x: Array) -> Array:
        g = _mean(x)
        r = x[0] / g
        return jnp.stack([x[0], g * (1 - jnp.sqrt(r) - r * jnp.sin(10 * jnp.pi * x[0]))])

    return Problem(box(0.0, 1.0, variables), function, 2)


def zdt4(variables: int = 10) -> Problem:
    """The front of ZDT1 behind 21^(D-1) local ones."""

    def function(x: Array) -> Array:
        z = x[1:]
        g = 1 + 10 * z.shape[0] + jnp.sum(z * z - 10 * jnp.cos(4 * jnp.pi * z))
        return jnp.stack([x[0], g * (1 - jnp.sqrt(x[0] / g))])

    wide = box(-5.0, 5.0, variables)
    return Problem(Box(wide.lower.at[0].set(0), wide.upper.at[0].set(1)), function, 2)


def zdt6(variables: int = 10) -> Problem:
    """The front of ZDT2, unevenly covered."""

    def function(x: Array) -> Array:
        f = 1 - jnp.exp(-4 * x[0]) * jnp.sin(6 * jnp.pi * x[0]) ** 6
        g = 1 + 9 * jnp.mean(x[1:]) ** 0.25
        return jnp.stack([f, g * (1 - (f / g) ** 2)])

    return Problem(box(0.0, 1.0, variables), function, 2)


def _mean(x: Array) -> Array:
    return 1 + 9 * jnp.mean(x[1:])
