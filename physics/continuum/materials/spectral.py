"""Stress and return maps given in principal stretches, with derivatives exact everywhere.

A law maps stretches s of F = U diag(s) V^T to (h, t, extra): new stretches, principal Kirchhoff
stress and invariants. The maps are H = U diag(h) V^T and tau = U diag(t) U^T. The decomposition is
never differentiated. With dF' = U^T dF V, in the principal frame (i != j)

    dH'_ij   = a_ij sym(dF')_ij + b_ij skew(dF')_ij
    dtau'_ij = (t_i - t_j) / (s_i - s_j) * (s_j dF'_ij + s_i dF'_ji) / (s_i + s_j)
    a_ij = (h_i - h_j) / (s_i - s_j),   b_ij = (h_i + h_j) / (s_i + s_j)

and on the diagonal the law's own derivative. Where stretches coincide, a divided difference becomes
the mean of the derivatives at both stretches, which is right to second order in the gap. So the
rest state F = I, where clamped rules are wrong by 60-100 %, is as exact as any other. Quantities
that all stretches share (pressure, distance from a yield surface) are equal at both and held fixed:
near the tip of sand's cone they change within the gap. Second derivatives are in `curvature`.
Xu, Sin, Zhu & Barbic (2015), doi:10.1145/2766917, section 4, for the isotropic form.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.devices.precision import safe_tiny
from jaxgpu.geometry.vectors import Mat, Vec, congruence, diagonal_scale, matmul, matrix, transpose

from . import forms
from .curvature import second_derivative
from .decomposition import svd

# (stretches, stretches at which it evaluates invariants, parameters)
# -> (new stretches or (), principal Kirchhoff stress, invariants)
type Law = Callable[[Vec, Vec, Any], tuple[Vec, Vec, Any]]


def spectral(law: Law, f: Mat, parameters: Any) -> tuple[Mat, Mat, Any]:
    """Apply `law` to the principal stretches of f.

    Args:
        law: `law(s, at, parameters)` returns (h, t, extra); h may be () if no new deformation is
            needed. h_i and t_i depend on s_i and on symmetric functions of the stretches `at`,
            extra on the latter only. Both arguments are the stretches of f, the last of them
            negative if det f is; derivatives vary the one without the other.
        f: 2x2 or 3x3 deformation gradient.
        parameters: pytree of arrays for the law; scalars or of the shape of an entry of f.
    Returns:
        H, tau and extra; H is () if h is.
    Differentiable in f and the parameters in any mode and order up to the second; a third
    derivative raises. Error of a first derivative: eps^(2/3) relative, 4e-11 in float64; of a
    second one 1e-8, where no two stretches are opposite and none is zero.
    """
    like = f[0][0]
    full = lambda a: jnp.broadcast_to(jnp.asarray(a, jnp.result_type(a, like)), like.shape)
    return forms.apply(
        _evaluate, first_derivative, second_derivative, law, (f, jax.tree.map(full, parameters))
    )


def _evaluate(law: Law, point):
    """Return the law's result at f, and the decomposition, which derivatives reuse."""
    f, parameters = point
    frame = u, s, v = svd(f)
    h, t, extra = law(s, s, parameters)
    extra = jax.tree.map(lambda a: jnp.broadcast_to(a, s[0].shape), extra)
    return ((diagonal_scale(u, h, v) if h else ()), congruence(u, t), extra), frame


def first_derivative(law: Law, frame, point, direction):
    """Return the derivative of the three results along a direction (df, dparameters)."""
    (u, s, v), (_, parameters), (df, dparameters) = frame, point, direction
    g = matmul(matmul(transpose(u), df), v)  # dF in the principal frame
    d = len(s)
    full_law = lambda s, parameters: law(s, s, parameters)
    (h, t, _), (dh, dt, dextra) = jax.jvp(
        full_law, (s, parameters), (tuple(g[i][i] for i in range(d)), dparameters)
    )
    # derivative of h_i and t_i in s_i at fixed invariants
    slope_h, slope_t, _ = jax.jvp(
        lambda own: law(own, s, parameters), (s,), (tuple(jnp.ones_like(x) for x in s),)
    )[1]
    dtau = _assemble(dt, lambda i, j: _stress_entry(s, t, slope_t, g, i, j))
    dH = _assemble(dh, lambda i, j: _stretch_entry(s, h, slope_h, g, i, j)) if h else ()
    rotate = lambda m, w: matmul(matmul(u, m), transpose(w))
    return (rotate(dH, v) if h else ()), rotate(dtau, u), dextra


def _assemble(diagonal: Vec, entry: Callable[[int, int], Array]) -> Mat:
    d = len(diagonal)
    return matrix([diagonal[i] if i == j else entry(i, j) for j in range(d)] for i in range(d))


def _divided_difference(s: Vec, y: Vec, dy: Vec, i: int, j: int) -> Array:
    """Return (y_i - y_j) / (s_i - s_j), or its limit where the two stretches nearly coincide."""
    gap = s[i] - s[j]
    near = jnp.abs(gap) < jnp.finfo(gap.dtype).eps ** (1 / 3) * jnp.abs(s[0])
    return jnp.where(near, (dy[i] + dy[j]) / 2, (y[i] - y[j]) / jnp.where(near, 1, gap))


def _stretch_sum(s: Vec, i: int, j: int) -> Array:
    """Return s_i + s_j >= 0, bounded away from zero: it vanishes only where f inverts."""
    return jnp.maximum(s[i] + s[j], 1e-6 * jnp.abs(s[0]) + safe_tiny(s[0].dtype))


def _stretch_entry(s: Vec, h: Vec, slope: Vec, g: Mat, i: int, j: int) -> Array:
    a = _divided_difference(s, h, slope, i, j)
    b = (h[i] + h[j]) / _stretch_sum(s, i, j)
    return 0.5 * (a * (g[i][j] + g[j][i]) + b * (g[i][j] - g[j][i]))


def _stress_entry(s: Vec, t: Vec, slope: Vec, g: Mat, i: int, j: int) -> Array:
    a = _divided_difference(s, t, slope, i, j)
    return a * (s[j] * g[i][j] + s[i] * g[j][i]) / _stretch_sum(s, i, j)
