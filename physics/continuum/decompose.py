"""Signed singular values of 2x2 and 3x3 matrices, many at a time.

A = U diag(s) V^T with det U = det V = +1 and |s_0| >= |s_1| >= |s_2|; only the last is negative,
when det A is. Rotations from the right make the columns orthogonal (one-sided Jacobi, Hestenes
1958, doi:10.1137/0106005), the columns are sorted, then one Givens QR gives U and s. After
McAdams, Selle, Tamstorf, Teran & Sifakis (2011), University of Wisconsin TR1690, who turn
A^T A instead; its squared condition would cost float32 half its digits.

About 600 operations a 3x3 matrix and no branch. Nothing here should be differentiated: the
derivative of U or V alone is unbounded where values repeat. `spectral` has the derivatives.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.physics.continuum.tensor import Mat, Vec, dot, identity, matrix, scale, transpose

SWEEPS = 4  # the error after each: 1e-1, 1e-2, 1e-5, 1e-15 of s_0 (cubic convergence)


def svd(a: Mat) -> tuple[Mat, Vec, Mat]:
    """U, s, V of A = U diag(s) V^T; error of the product 1e-6 |A| in float32, 4e-15 in float64.

    Small singular values are accurate relative to the largest, not to themselves.

    >>> one = jnp.ones(())
    >>> svd(((0 * one, -2 * one), (one, 0 * one)))[1]
    (Array(2., dtype=float32), Array(1., dtype=float32))
    """
    d = len(a)
    size = jnp.maximum(_largest(a), jnp.finfo(a[0][0].dtype).tiny)
    b = scale(1 / size, a)
    carry = (b, identity(size, d), _measures(b))
    turns = 2 if d == 2 else 3 * SWEEPS
    b, v, (lengths, _) = lax.fori_loop(np.int32(0), np.int32(turns), _turn, carry)
    b, v = _sorted_columns(b, v, lengths)
    u = identity(size, d)
    for column, p, q in ((0, 0, 1),) if d == 2 else ((0, 0, 1), (0, 0, 2), (1, 1, 2)):
        c, s = _unit(b[p][column], b[q][column])
        b, u = transpose(_rotate(transpose(b), p, q, c, s)), _rotate(u, p, q, c, s)
    return u, tuple(b[i][i] * size for i in range(d)), v


def _largest(a: Mat) -> Array:
    """Largest magnitude of an entry."""
    return functools.reduce(jnp.maximum, [jnp.abs(x) for row in a for x in row])


def _unit(a: Array, b: Array) -> tuple[Array, Array]:
    """(a, b) / |(a, b)|, or (1, 0) for the zero vector; no overflow or underflow."""
    size = jnp.maximum(jnp.abs(a), jnp.abs(b))
    some = size > 0
    size = jnp.where(some, size, 1)
    a, b = a / size, b / size
    r = lax.rsqrt(jnp.where(some, a * a + b * b, 1))
    return jnp.where(some, a * r, 1), b * r


def _rotate(m: Mat, p: int, q: int, c: Array, s: Array) -> Mat:
    """Columns p and q of m turned into c m_p + s m_q and -s m_p + c m_q."""
    new = [list(row) for row in m]
    for old, row in zip(m, new):
        row[p], row[q] = c * old[p] + s * old[q], c * old[q] - s * old[p]
    return matrix(new)


def _measures(b: Mat) -> tuple[Vec, Array]:
    """Squared length of each column, and the overlap of the first two."""
    columns = transpose(b)
    return tuple(dot(c, c) for c in columns), dot(columns[0], columns[1])


def _turn(_, carry):
    """Rotate the first two columns until they are orthogonal, then bring the next pair forward.

    What decides the sign of the angle, and later the order, was computed one turn before: XLA
    may recompute a value in several kernels with other roundings, but not across a loop's
    boundary, so b and v always take the same side of a near tie.
    """
    b, v, (lengths, overlap) = carry
    half = 0.5 * (lengths[1] - lengths[0])
    c2, s2 = _unit(jnp.abs(half), jnp.where(lengths[1] >= lengths[0], -overlap, overlap))
    t = s2 / (1 + c2)  # tangent of half the angle whose cosine is c2
    c = lax.rsqrt(1 + t * t)
    b, v = (_rolled(_rotate(m, 0, 1, c, c * t)) for m in (b, v))
    return b, v, _measures(b)


def _rolled(m: Mat) -> Mat:
    """Columns 1, 2, 0 of a 3x3 matrix: pairs come in turn. A 2x2 matrix has but one pair."""
    return m if len(m) == 2 else tuple((row[1], row[2], row[0]) for row in m)


def _sorted_columns(b: Mat, v: Mat, lengths: Vec) -> tuple[Mat, Mat]:
    """Columns by falling length; a swap negates one column, so that det stays."""
    b, v, size = [list(c) for c in transpose(b)], [list(c) for c in transpose(v)], list(lengths)
    for p, q in ((0, 1),) if len(size) == 2 else ((0, 1), (0, 2), (1, 2)):
        swap = size[p] < size[q]
        for m in (b, v):
            m[p], m[q] = (
                [jnp.where(swap, y, x) for x, y in zip(m[p], m[q])],
                [jnp.where(swap, -x, y) for x, y in zip(m[p], m[q])],
            )
        size[p], size[q] = jnp.where(swap, size[q], size[p]), jnp.where(swap, size[p], size[q])
    return transpose(matrix(b)), transpose(matrix(v))
