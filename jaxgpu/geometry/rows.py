"""Vectors as the last axis of arrays, [..., D]: for code outside of hot loops.

Kernels represent a vector as a tuple of arrays instead, which XLA fuses better: see `vectors`.
"""

import jax.numpy as jnp
from jax import Array


def dot(a: Array, b: Array) -> Array:
    """Return the dot product of vectors [..., D]: [...]."""
    return jnp.sum(a * b, -1)


def length(a: Array) -> Array:
    """Return the Euclidean norm [...] of vectors [..., D], with gradient zero at zero.

    >>> length(jnp.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [5.0, 0.0]
    """
    square = dot(a, a)
    nonzero = square > 0
    return jnp.where(nonzero, jnp.sqrt(jnp.where(nonzero, square, 1)), 0)


def unit(a: Array) -> Array:
    """Return vectors [..., D] of length one along `a`; nan where `a` is zero."""
    return a / jnp.sqrt(dot(a, a))[..., None]


def cross(a: Array, b: Array) -> Array:
    """Return the cross product [..., 3] of vectors [..., 3].

    >>> cross(jnp.array([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0])).tolist()
    [0.0, 0.0, 1.0]
    """
    (a0, a1, a2), (b0, b1, b2) = (tuple(v[..., i] for i in range(3)) for v in (a, b))
    return jnp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)
