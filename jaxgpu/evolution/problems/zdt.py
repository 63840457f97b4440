"""ZDT1-6, with two objectives.

Zitzler, Deb & Thiele (2000), doi:10.1162/106365600568202. ZDT5 is on bit strings; as in `bits`, a
bit is set if its variable, in [0, 1], is at least 1/2.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.ranges import Range, refuse

from ..problem import Box, Problem, box


@explain_errors
def zdt1(variables: int = 30) -> Problem:
    """Return ZDT1, with the convex front f2 = 1 - sqrt(f1).

    >>> print(zdt1().function(jnp.zeros(30)))
    [0. 1.]
    """
    return _mean_distance_problem(variables, lambda x, g: 1 - jnp.sqrt(x[0] / g))


@explain_errors
def zdt2(variables: int = 30) -> Problem:
    """Return ZDT2, with the concave front f2 = 1 - f1^2.

    >>> zdt2().evaluate(jnp.zeros((1, 30)).at[0, 0].set(0.5))[0]
    Array([[0.5 , 0.75]], dtype=float32)
    """
    return _mean_distance_problem(variables, lambda x, g: 1 - (x[0] / g) ** 2)


@explain_errors
def zdt3(variables: int = 30) -> Problem:
    """Return ZDT3, with a front of five disconnected pieces.

    >>> zdt3().evaluate(jnp.zeros((1, 30)))[0]
    Array([[0., 1.]], dtype=float32)
    """

    def function(x: Array) -> Array:
        g = _mean_distance(x)
        r = x[0] / g
        return jnp.stack([x[0], g * (1 - jnp.sqrt(r) - r * jnp.sin(10 * jnp.pi * x[0]))])

    return Problem(_box(variables), function, 2)


@explain_errors
def zdt4(variables: int = 10) -> Problem:
    """Return ZDT4: the front of ZDT1 behind 21^(D-1) local ones.

    >>> zdt4().evaluate(jnp.zeros((1, 10)).at[0, 0].set(0.25))[0]
    Array([[0.25, 0.5 ]], dtype=float32)
    """

    def function(x: Array) -> Array:
        z = x[1:]
        # 1 - cos(2 a) = 2 sin(a)^2, because the paper's sum cancels near the front
        g = 1 + jnp.sum(z * z + 20 * jnp.sin(2 * jnp.pi * z) ** 2)
        return jnp.stack([x[0], g * (1 - jnp.sqrt(x[0] / g))])

    wide = _box(variables, -5.0, 5.0)
    return Problem(Box(wide.lower.at[0].set(0), wide.upper.at[0].set(1)), function, 2)


@explain_errors
def zdt5() -> Problem:
    """Return ZDT5: 31 points f2 = 10 / f1 behind the deceptive f2 = 11 / f1; 30 bits, then 10 x 5.

    >>> print(zdt5().function(jnp.ones(80)))
    [31.          0.32258064]
    """

    def function(x: Array) -> Array:
        bit = jnp.where(x >= 0.5, 1, 0).astype(x.dtype)
        f = 1 + jnp.sum(bit[:30])
        ones = jnp.sum(bit[30:].reshape(10, 5), axis=1)
        return jnp.stack([f, jnp.sum(jnp.where(ones < 5, 2 + ones, 1)) / f])

    return Problem(box(0.0, 1.0, 80), function, 2)


@explain_errors
def zdt6(variables: int = 10) -> Problem:
    """Return ZDT6: the front of ZDT2, unevenly covered.

    >>> zdt6().evaluate(jnp.zeros((1, 10)))[0]
    Array([[1., 0.]], dtype=float32)
    """

    def function(x: Array) -> Array:
        f = 1 - jnp.exp(-4 * x[0]) * jnp.sin(6 * jnp.pi * x[0]) ** 6
        g = 1 + 9 * jnp.mean(x[1:]) ** 0.25
        return jnp.stack([f, g * (1 - (f / g) ** 2)])

    return Problem(_box(variables), function, 2)


def _box(variables: int, lower: float = 0.0, upper: float = 1.0) -> Box:
    refuse("zdt: variables", variables, Range(least=2, whole=True, one=True))
    return box(lower, upper, variables)


def _mean_distance_problem(variables: int, front: Callable[[Array, Array], Array]) -> Problem:
    """Return the problem f1 = x1, f2 = g h, with a mean distance g and the front h of x and g."""

    def function(x: Array) -> Array:
        g = _mean_distance(x)
        return jnp.stack([x[0], g * front(x, g)])

    return Problem(_box(variables), function, 2)


def _mean_distance(x: Array) -> Array:
    return 1 + 9 * jnp.mean(x[1:])
