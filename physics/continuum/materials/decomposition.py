"""Signed singular value decomposition of 2x2 and 3x3 matrices, in batches.

A = U diag(s) V^T with det U = det V = +1 and |s_0| >= |s_1| >= |s_2|; only the last is negative,
when det A is. Rotations from the right make the columns orthogonal (one-sided Jacobi, Hestenes
1958, doi:10.1137/0106005); sorted and normalised, the columns are U. After McAdams, Selle,
Tamstorf, Teran & Sifakis (2011), University of Wisconsin TR1690, who rotate A^T A instead: its
squared condition number would cost float32 half its digits.

A 3x3 matrix costs about 600 operations and no branch. Nothing here should be differentiated: the
derivative of U or V separately is unbounded where values repeat. `spectral` has the derivatives.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.devices.primitive import primitive
from jaxgpu.geometry.vectors import Mat, Vec, dot, identity, matrix, transpose

SWEEPS = 4  # the error after each: 1e-1, 1e-2, 1e-5, 1e-15 of s_0 (cubic convergence)


def svd(a: Mat) -> tuple[Mat, Vec, Mat]:
    """Return U, s, V of A = U diag(s) V^T; product error 1e-6 |A| in float32, 4e-15 |A| in float64.

    Small singular values are accurate relative to the largest, not to themselves. Entries must be
    between 1e-9 and 1e9 in size, or zero: their fourth powers must stay within float32.

    >>> one = jnp.ones(())
    >>> svd(((0 * one, -2 * one), (one, 0 * one)))[1]
    (Array(2., dtype=float32), Array(1., dtype=float32))
    """
    d = len(a)
    flat = _orthogonalize(*(x for row in a for x in row))
    b, v = (matrix(flat[i : i + d] for i in range(n, n + d * d, d)) for n in (0, d * d))
    b, v = _sort_columns(b, v, tuple(flat[2 * d * d :]))
    u, v = _orthonormal_frame(b, jnp.finfo(b[0][0].dtype).eps), _orthonormal_frame(v, 0.0)
    return transpose(u), tuple(dot(p, q) for p, q in zip(u, b)), transpose(v)


def _orthonormal_frame(columns, negligible: float | np.floating) -> Mat:
    """Return right-handed orthonormal columns along the given columns, the last up to its sign.

    A zero first column, or a second one not above `negligible` times the first, gets any direction.
    Ends in divisions on purpose: XLA copies a cheap operation into each of the twenty kernels
    that use its result, but not a division, which makes this half the cost of a stress update.
    """
    first = columns[0]
    length = dot(first, first)
    long = length > 0
    length = jnp.sqrt(jnp.where(long, length, 1))
    x = [jnp.where(long, a, float(i == 0)) / length for i, a in enumerate(first)]
    if len(columns) == 2:
        return ((x[0], x[1]), (-x[1], x[0]))
    overlap = dot(x, columns[1])
    y = [a - overlap * b for a, b in zip(columns[1], x)]
    square = dot(y, y)
    long = square > (4 * negligible * length) ** 2
    flat = x[2] * x[2] < 0.5
    other = (jnp.where(flat, -x[1], 0), jnp.where(flat, x[0], -x[2]), jnp.where(flat, 0, x[1]))
    y = [jnp.where(long, a, b) for a, b in zip(y, other)]
    length = jnp.sqrt(dot(y, y))
    y = [a / length for a in y]
    z = (x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0])
    return matrix((x, y, z))


def _rotate(m: Mat, p: int, q: int, c: Array, s: Array) -> Mat:
    """Replace columns p and q of m by c m_p + s m_q and -s m_p + c m_q."""
    new = [list(row) for row in m]
    for old, row in zip(m, new):
        row[p], row[q] = c * old[p] + s * old[q], c * old[q] - s * old[p]
    return matrix(new)


def _lengths_and_overlap(b: Mat) -> tuple[Vec, Array]:
    """Return the squared length of each column, and the dot product of the first two."""
    columns = transpose(b)
    return tuple(dot(c, c) for c in columns), dot(columns[0], columns[1])


def _jacobi_rotation(_, carry):
    """Rotate the first two columns until they are orthogonal, then bring the next pair forward."""
    b, v, (lengths, overlap) = carry
    half = 0.5 * (lengths[1] - lengths[0])
    signed = jnp.where(lengths[1] >= lengths[0], -overlap, overlap)
    t = signed / (jnp.abs(half) + jnp.sqrt(half * half + overlap * overlap) + safe_tiny(half.dtype))
    c = lax.rsqrt(1 + t * t)
    b, v = (_roll_columns(_rotate(m, 0, 1, c, c * t)) for m in (b, v))
    return b, v, _lengths_and_overlap(b)


def _roll_columns(m: Mat) -> Mat:
    """Return columns 1, 2, 0 of a 3x3 matrix, for its next pair; a 2x2 matrix has only one pair."""
    return m if len(m) == 2 else tuple((row[1], row[2], row[0]) for row in m)


def _sort_columns(b: Mat, v: Mat, lengths: Vec) -> tuple[Mat, Mat]:
    """Return the columns by decreasing length; a swap negates one column, which preserves det."""
    left, right = ([list(column) for column in transpose(m)] for m in (b, v))
    size = list(lengths)
    for p, q in ((0, 1),) if len(size) == 2 else ((0, 1), (0, 2), (1, 2)):
        swap = size[p] < size[q]
        for m in (left, right):
            m[p], m[q] = (
                [jnp.where(swap, y, x) for x, y in zip(m[p], m[q])],
                [jnp.where(swap, -x, y) for x, y in zip(m[p], m[q])],
            )
        size[p], size[q] = jnp.where(swap, size[q], size[p]), jnp.where(swap, size[p], size[q])
    return matrix(left), matrix(right)


# The value that decides the sign of an angle, and later the order, must be identical at each use,
# or b and v take two sides of a near tie: XLA may recompute a value in several kernels with
# different rounding. It never does so across a loop boundary, so a CPU iterates in a loop. On an
# accelerator each iteration of a loop is a sequence of launches, so all iterations are between two
# barriers, in one kernel that computes every value once.


def _loop_rotations(carry: Any, turns: int) -> Any:
    return lax.fori_loop(np.int32(0), np.int32(turns), _jacobi_rotation, carry)


def _unroll_rotations(carry: Any, turns: int) -> Any:
    # the rotation is constant at the start, and a barrier would write it to memory
    a, v, measures = carry
    a, measures = lax.optimization_barrier((a, measures))
    carry = (a, v, measures)
    for i in range(turns):
        carry = _jacobi_rotation(i, carry)
    return lax.optimization_barrier(carry)


def _orthogonalize_with(take: Callable[[Any, int], Any], *entries: Array) -> list[Array]:
    """Return the entries of A with orthogonal columns, of the rotation V, and squared lengths."""
    d = 2 if len(entries) == 4 else 3
    a = matrix(entries[i : i + d] for i in range(0, d * d, d))
    carry = (a, identity(entries[0], d), _lengths_and_overlap(a))
    b, v, (lengths, _) = take(carry, 2 if d == 2 else 3 * SWEEPS)
    return [*(x for m in (b, v) for row in m for x in row), *lengths]


_orthogonalize = primitive(
    "continuum_orthogonal",
    partial(_orthogonalize_with, _unroll_rotations),
    lambda *avals: [avals[0].update()] * (10 if len(avals) == 4 else 21),
    several=True,
    kernels={"cpu": partial(_orthogonalize_with, _loop_rotations)},
)
