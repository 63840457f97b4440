"""Second derivatives of principal-stretch maps, exact also where stretches repeat.

In the principal frame of b = F F^T, whose eigenvalues are q_i = s_i^2, an isotropic map
Y = U diag(y) U^T has, for changes X and Z of b (l is the third index, l != i, k),

    Y''_ik = Z_ik D_X a_ik + X_ik D_Z a_ik + c (X_il Z_lk + Z_il X_lk),      i != k
    Y''_mm = D_X D_Z y_m + sum over pairs i < j of 2 X_ij Z_ij e_m,ij

where D_X is the law's derivative along the diagonal of X and in the parameters. With the operator

    [w]_ij = (w - w with q_i and q_j exchanged) / (q_i - q_j)

all coefficients are a_ij = [y_i]_ij, c = [a_12]_10, and e_i,ij = d a_ij / dq_i + [d y_j / dq_i]_ij,
e_j,ij = d a_ij / dq_j + [d y_j / dq_i]_ij, e_l,ij = [d y_l / dq_i]_ij. Only [w] is singular. For
close values it is the mean of (d_i - d_j) w / 2 over the path from one state to the other, by three
Gauss points, with an error of 5e-7 times the gap's sixth power. In a and c the invariants of y are
held fixed, as in `spectral`, so that closeness is a matter of y_i only; in e they vary, and the
threshold is much smaller. tau is such a map with y = t, and H = R F with y = h / s.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.geometry.vectors import Mat, Vec, add, matmul, matrix, transpose
from jaxgpu.inputs.fields import pytree

# (stretches, stretches for invariants, parameters) -> (new stretches, stress, invariants)
type Law = Callable[[Vec, Vec, Any], tuple[Vec, Vec, Any]]
type At = tuple[Vec, Any]  # signed squares of the stretches, or their change, and the parameters
type Point = tuple[Mat, Any]  # f, or its change, and the parameters
type Frame = tuple[Mat, Vec, Mat]  # U, s and V of f

PAIRS = {2: ((0, 1),), 3: ((0, 1, 2), (0, 2, 1), (1, 2, 0))}  # i, j and the third index
GAUSS = 0.6**0.5  # outer two of three Gauss points, with weights 5, 8 and 5
# gaps, as powers of eps, below which Gauss points are used: c rounds to eps / gap^2, e to eps / gap
SMOOTH, SHARP = 1 / 6, 2 / 5


@pytree
class Pair:
    """Coefficients of a pair (i, j) of eigenvalues, for (h / s, t) or for the invariants."""

    a: Any  # a_ij
    slopes: Any  # derivatives D_X and D_Z of a_ij
    e: Any  # e_i, e_j and e_l
    extra: Any  # e of the invariants


def second_derivative(
    law: Law, frame: Frame, point: Point, x: Point, z: Point
) -> tuple[Any, Mat, Any]:
    """Return the second derivative of (H, tau, extra) along two directions (df, dparameters)."""
    (u, s, v), (_, parameters) = frame, point
    d = len(s)
    g, k = (matmul(matmul(transpose(u), df), v) for df, _ in (x, z))
    bx, bz, bxz = (
        _add_transpose(_scale_columns(g, s)),
        _add_transpose(_scale_columns(k, s)),
        _add_transpose(matmul(g, transpose(k))),
    )
    sign = tuple(jnp.where(a < 0, -1, 1).astype(a.dtype) for a in s)
    at = tuple(a * jnp.abs(a) for a in s), parameters  # signed squares: the law needs signs
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    changes = ((bx, x[1]), (bz, z[1]), (bxz, zeros))
    directions = [(tuple(b[i][i] * sign[i] for i in range(d)), p) for b, p in changes]
    evaluate = lambda at: _evaluate(law, at, at)
    # D_X D_Z y, plus D y along the second derivative of b
    mixed = _directional_derivative(
        partial(_directional_derivative, evaluate, directions[0]), directions[1], at
    )
    straight = jax.tree.map(jnp.add, mixed, _directional_derivative(evaluate, directions[2], at))
    pairs = _all_pair_coefficients(law, at, sign, directions[:2])
    c = _triple_difference(law, at) if d == 3 else ((), ())
    extra = straight[2]
    for (i, j, *_), pair in zip(PAIRS[d], pairs):
        weight = 2 * bx[i][j] * bz[i][j]
        extra = jax.tree.map(lambda a, e, w=weight: a + w * e, extra, pair.extra)
    tau = matmul(
        matmul(u, _second_derivative_in_frame(1, straight[1], pairs, c[1], (bx, bz, bxz))),
        transpose(u),
    )
    if not straight[0]:
        return (), tau, extra
    # H = R F: R'' F, plus R' along each direction with dF along the other
    h = _scale_columns(_second_derivative_in_frame(0, straight[0], pairs, c[0], (bx, bz, bxz)), s)
    for b, direction, other in ((bx, directions[0], k), (bz, directions[1], g)):
        h = add(
            h,
            matmul(
                _first_derivative_in_frame(
                    _directional_derivative(evaluate, direction, at)[0], pairs, b
                ),
                other,
            ),
        )
    return matmul(matmul(u, h), transpose(v)), tau, extra


def _scale_columns(m: Mat, s: Vec) -> Mat:
    """Return m diag(s)."""
    return matrix([a * b for a, b in zip(row, s)] for row in m)


def _add_transpose(m: Mat) -> Mat:
    """Return m + m^T."""
    return add(m, transpose(m))


def _evaluate(law: Law, at: At, fixed: At) -> tuple[Vec, Vec, Any]:
    """Return h / s (or ()), t and invariants at `fixed`, from signed squares of the stretches."""
    (q, _), (others, parameters) = at, fixed
    root = lambda a: jnp.sqrt(jnp.maximum(jnp.abs(a), safe_tiny(a.dtype)))
    signed_root = lambda q: tuple(jnp.where(a < 0, -root(a), root(a)) for a in q)
    s = signed_root(q)
    h, t, extra = law(s, signed_root(others), parameters)
    extra = jax.tree.map(lambda a: jnp.broadcast_to(a, q[0].shape), extra)
    return tuple(a / b for a, b in zip(h, s)), t, extra


def _directional_derivative(w: Callable[[At], Any], direction: At, at: At) -> Any:
    """Return the derivative of w along a direction."""
    return jax.jvp(w, (at,), (direction,))[1]


def _unit_direction(q: Vec, i: int, size: Any) -> Vec:
    """Return the direction that changes value i only, by `size`."""
    return tuple(size + jnp.zeros_like(a) if i == j else jnp.zeros_like(a) for j, a in enumerate(q))


def _divided_difference(w: Callable[[At], Any], at: At, power: float) -> Any:
    """Return [w]_01 of a function w of `at`, in which the first two values are exchanged."""
    (p, q, *rest), parameters = at
    gap = jnp.abs(p) - jnp.abs(q)
    size = sum((jnp.abs(a) for a in rest), jnp.abs(p) + jnp.abs(q))
    near = jnp.abs(gap) < jnp.finfo(gap.dtype).eps ** power * size
    middle, reach = (p + q) / 2, (p - q) / 2 * GAUSS
    # For separate values all three points are p, so that no state in between is evaluated.
    one, mean, other = (jnp.where(near, m, p) for m in (middle + reach, middle, middle - reach))
    first, last = jnp.stack([p, q, one, mean, other]), jnp.stack([q, p, other, mean, one])

    def value_and_slope(first: Array, last: Array) -> Any:
        point = (first, last, *rest), parameters
        direction = tuple(
            a - b
            for a, b in zip(_unit_direction(point[0], 0, 1.0), _unit_direction(point[0], 1, 1.0))
        )
        return jax.jvp(w, (point,), ((direction, jax.tree.map(jnp.zeros_like, parameters)),))

    value, slope = jax.vmap(value_and_slope)(first, last)
    safe = jnp.where(near, 1, gap)  # no 1 / 0: the unused branch is differentiated too
    limit = lambda m: (5 * m[2] + 8 * m[3] + 5 * m[4]) / 18
    select_quotient = lambda f, m: jnp.where(near, limit(m), (f[0] - f[1]) / safe)
    return jax.tree.map(select_quotient, value, slope)


def _pair_difference(law: Law, at: At, fixed: At) -> tuple[Any, Array]:
    """Return a_01 at the invariants of `fixed`, for h / s (or ()) and for t."""
    r, t, _ = _divided_difference(lambda at: _evaluate(law, at, fixed), at, SMOOTH)
    return (r[0] if r else ()), t[0]


def _all_pair_coefficients(law: Law, at: At, sign: Vec, directions: list[At]) -> list[Pair]:
    """Return the coefficients of all pairs, computed by one vectorised program."""
    q, parameters = at
    orders = PAIRS[len(q)]
    permute = lambda m: tuple(jnp.stack([m[order[n]] for order in orders]) for n in range(len(q)))
    coefficients = lambda q, sign, x, z: _pair_coefficients(
        law, (q, parameters), sign, ((x, directions[0][1]), (z, directions[1][1]))
    )
    every = jax.vmap(coefficients)(
        permute(q), permute(sign), *(permute(direction) for direction, _ in directions)
    )
    return [jax.tree.map(lambda a, n=n: a[n], every) for n in range(len(orders))]


def _pair_coefficients(law: Law, at: At, sign: Vec, directions: tuple[At, At]) -> Pair:
    """Return the coefficients of the first two values."""
    q, parameters = at
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    own = [(_unit_direction(q, n, sign[n]), zeros) for n in (0, 1)]
    difference = lambda at: _pair_difference(law, at, at)
    evaluate = lambda at: _evaluate(law, at, at)
    # The first direction is evaluated separately: a transpose must see only terms linear in it.
    stacked = jax.tree.map(lambda *a: jnp.stack(a), directions[1], *own)
    differentiate = lambda direction: jax.jvp(difference, (at,), (direction,))
    a, slopes = jax.vmap(differentiate, out_axes=(None, 0))(stacked)
    other, *slope = (jax.tree.map(lambda a, n=n: a[n], slopes) for n in range(3))
    slopes = [_directional_derivative(difference, directions[0], at), other]
    r, t, extra = _divided_difference(partial(_directional_derivative, evaluate, own[0]), at, SHARP)
    mixed = (r[1] if r else ()), t[1]
    e = [jax.tree.map(jnp.add, da, mixed) for da in slope]
    if len(q) == 3:
        e.append(((r[2] if r else ()), t[2]))
    return Pair(a, slopes, e, extra)


def _triple_difference(law: Law, at: At) -> tuple[Any, Array]:
    """Return c, the second divided difference over all three values."""
    (q0, q1, q2), parameters = at
    third_difference = lambda own: _pair_difference(
        law, ((own[0][0], own[0][2], own[0][1]), own[1]), at
    )
    return _divided_difference(third_difference, ((q1, q0, q2), parameters), SMOOTH)


def _second_derivative_in_frame(
    which: int, straight: Vec, pairs: list[Pair], c: Any, changes: tuple[Mat, Mat, Mat]
) -> Mat:
    """Return Y'' in the principal frame, for h / s if `which` is 0 and for t if it is 1."""
    bx, bz, bxz = changes
    d = len(straight)
    rows = [list(row) for row in bxz]
    for i in range(d):
        rows[i][i] = straight[i]
    for (i, j, *rest), pair in zip(PAIRS[d], pairs):
        ax, az = (a[which] for a in pair.slopes)
        entry = pair.a[which] * bxz[i][j] + bz[i][j] * ax + bx[i][j] * az
        for l in rest:
            entry = entry + c * (bx[i][l] * bz[l][j] + bz[i][l] * bx[l][j])
        rows[i][j] = rows[j][i] = entry
        weight = 2 * bx[i][j] * bz[i][j]
        for m, e in zip((i, j, *rest), pair.e):
            rows[m][m] = rows[m][m] + weight * e[which]
    return matrix(rows)


def _first_derivative_in_frame(diagonal: Vec, pairs: list[Pair], b: Mat) -> Mat:
    """Return the derivative of the rotation R of F = R S along b, in the principal frame."""
    d = len(diagonal)
    rows = [[diagonal[i] if i == j else b[i][j] for j in range(d)] for i in range(d)]
    for (i, j, *_), pair in zip(PAIRS[d], pairs):
        rows[i][j] = rows[j][i] = pair.a[0] * b[i][j]
    return matrix(rows)
