"""Front shapes shared by DTLZ, WFG and LSMOP: m objectives from m - 1 positions in [0, 1].

Angles are given as fractions of a quarter turn, and their cosines as sines of the complement, so
that cos(pi/2) is exactly 0. In float32 it would be -4e-8, and a point on the boundary would gain by
being far from the front.
"""

import jax.numpy as jnp
from jax import Array


def front_products(along: Array, across: Array) -> Array:
    """Return objectives along_1 ... along_(m-j) across_(m-j+1) for each j. [m - 1], [m - 1] -> [m].

    >>> print(front_products(jnp.array([2.0, 3.0]), jnp.array([5.0, 7.0])))
    [ 6. 14.  5.]
    """
    one = jnp.ones_like(along[:1])
    return jnp.append(one, jnp.cumprod(along))[::-1] * jnp.append(one, across[::-1])


def quarter_sine(y: Array) -> Array:
    """Return the sine of y quarter turns."""
    return jnp.sin(jnp.pi / 2 * y)


def triangle(y: Array) -> Array:
    """Return a point of the plane sum f = 1. [m - 1] -> [m]."""
    return front_products(y, 1 - y)


def sphere(y: Array) -> Array:
    """Return a point of the unit sphere with polar angles of y quarter turns. [m - 1] -> [m]."""
    return front_products(quarter_sine(1 - y), quarter_sine(y))
