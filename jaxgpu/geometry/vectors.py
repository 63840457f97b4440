"""Small tensors as nested tuples of scalar arrays, so that XLA fuses across their components.

A vector is a tuple of D arrays and a matrix a tuple of D rows, D = 2 or 3, where all arrays have
one shape. Indexing and stacking a [..., 3, 3] array instead costs 6-fold in a stress update.
"""

import jax.numpy as jnp
from jax import Array

type Vec = tuple[Array, ...]
type Mat = tuple[tuple[Array, ...], ...]


def matrix(entries) -> Mat:
    """Return a matrix from nested sequences of arrays."""
    return tuple(tuple(row) for row in entries)


def identity(like: Array, d: int) -> Mat:
    """Return the identity matrix with entries of the shape and dtype of `like`."""
    one, zero = jnp.ones_like(like), jnp.zeros_like(like)
    return matrix([one if i == j else zero for j in range(d)] for i in range(d))


def matmul(a: Mat, b: Mat) -> Mat:
    """Return the matrix product a b."""
    columns = list(zip(*b))
    return matrix([dot(row, column) for column in columns] for row in a)


def matvec(a: Mat, b: Vec) -> Vec:
    """Return a b for a vector b."""
    return tuple(dot(row, b) for row in a)


def transpose(a: Mat) -> Mat:
    """Return the transpose of a."""
    return tuple(zip(*a))


def add(a: Mat, b: Mat) -> Mat:
    """Return a + b."""
    return matrix([x + y for x, y in zip(r, s)] for r, s in zip(a, b))


def scale(c, a: Mat) -> Mat:
    """Return c a for a scalar c."""
    return matrix([c * x for x in row] for row in a)


def shift(a: Mat, c) -> Mat:
    """Return a + c I for a scalar c."""
    return matrix([x + c if i == j else x for j, x in enumerate(row)] for i, row in enumerate(a))


def diagonal_scale(u: Mat, h: Vec, v: Mat) -> Mat:
    """Return u diag(h) v^T."""
    return matmul(matrix([x * y for x, y in zip(row, h)] for row in u), transpose(v))


def congruence(u: Mat, t: Vec) -> Mat:
    """Return u diag(t) u^T; each pair of equal entries is computed once."""
    scaled = [[x * y for x, y in zip(row, t)] for row in u]
    return _symmetric(scaled, u)


def gram(a: Mat) -> Mat:
    """Return a a^T; each pair of equal entries is computed once."""
    return _symmetric(a, a)


def _symmetric(a, b) -> Mat:
    """Return a b^T, given that it is symmetric."""
    n = range(len(a))
    half = {(i, j): dot(a[i], b[j]) for i in n for j in range(i + 1)}
    return matrix([half[max(i, j), min(i, j)] for j in n] for i in n)


def dot(a, b) -> Array:
    """Return the sum of the products of two sequences, added in order."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:]):
        total = total + x * y
    return total


def length(a) -> Array:
    """Return the Euclidean norm of a vector, with gradient zero at zero."""
    square = dot(a, a)
    nonzero = square > 0
    return jnp.where(nonzero, jnp.sqrt(jnp.where(nonzero, square, 1)), 0)


def unit(a: Vec) -> Vec:
    """Return a vector of length one along `a`, or zero, with gradient zero, where `a` is zero."""
    square = dot(a, a)
    nonzero = square > 0
    share = jnp.where(nonzero, 1 / jnp.sqrt(jnp.where(nonzero, square, 1)), 0)
    return tuple(share * b for b in a)


def cross(a, b) -> Vec:
    """Return the cross product of two vectors in space."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def inner(a: Mat, b: Mat) -> Array:
    """Return a : b, the sum of the products of the entries."""
    return dot([x for row in a for x in row], [x for row in b for x in row])


def trace(a: Mat) -> Array:
    """Return the sum of the diagonal."""
    return sum((a[i][i] for i in range(1, len(a))), a[0][0])


def cofactor(a: Mat) -> Mat:
    """Return the derivative of det a by a; det(a) a^-T for regular a."""
    if len(a) == 2:
        return ((a[1][1], -a[1][0]), (-a[0][1], a[0][0]))

    def minor(i, j):
        p, q, r, s = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
        return a[p][r] * a[q][s] - a[p][s] * a[q][r]

    return matrix([minor(i, j) for j in range(3)] for i in range(3))


def det(a: Mat) -> Array:
    """Return the determinant."""
    return dot(a[0], cofactor(a)[0])


def symmetric(a: Mat) -> Mat:
    """Return (a + a^T) / 2."""
    return scale(0.5, add(a, transpose(a)))


def deviator(a: Mat) -> Mat:
    """Return a without its isotropic part, in its own dimension."""
    return shift(a, trace(a) * (-1 / len(a)))
