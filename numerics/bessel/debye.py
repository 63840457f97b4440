"""log I_v and log K_v by one uniform expansion, for large s = sqrt(v^2 + x^2).

    log I = s - v a - log(2 pi s) / 2 + sum_k D_k(w) / s^k,    w = (v / s)^2,
    log K = -(s - v a) + log(pi / (2 s)) / 2 + sum_k (-1)^k D_k(w) / s^k,    a = asinh(v / x),

Debye's expansion (DLMF 10.41.3-4) for v > 0 and Hankel's (10.40.1-2) at v = 0.
"""

from math import log, pi
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from . import coefficients


class BesselKind(NamedTuple):
    """Function to evaluate, and its static options."""

    sign: int  # +1 for I, -1 for K
    scaled: bool = False  # log of exp(-x) I or exp(x) K
    least: float = 0.0  # known lower bound of all orders


def edge(x: Array) -> float:
    """Return the s from which the expansion is used, for the dtype of `x`."""
    return 24.0 if x.dtype == jnp.float64 else 10.0


def log_bessel(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return log I_v or log K_v."""
    half, _, angle, _ = polar(v, x)
    lead = 0.5 * v * _v_over_s_plus_x(v, x) if kind.scaled else half
    constant = -0.5 * log(4 * pi) if kind.sign > 0 else 0.5 * log(pi / 4)
    return kind.sign * 2 * (lead - 0.5 * v * angle) + (_log_tail(kind, v, x) + constant)


def derivative(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return the derivative of `log_bessel` in x, in a form whose own derivatives are accurate."""
    return kind.sign * (
        float(not kind.scaled) + _v_over_s_plus_x(v, x) * (v / x)
    ) + _log_tail_derivative(kind, v, x)


def ratio(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return I_{v+1} / I_v or K_{v+1} / K_v, a sum dominated by its first term."""
    lead = polar(v, x)[3] + (0.0 if kind.sign > 0 else 2 * (v / x))
    return lead + kind.sign * _log_tail_derivative(kind, v, x)


def expansion(kind: BesselKind, w: Array, y: Array) -> Array:
    """Return sum_k (sign y)^k D_k(w), with as many terms as `kind.least` requires."""
    accuracy = float(jnp.finfo(y.dtype).eps) / 16
    rows = coefficients.uniform_terms(max(edge(y), kind.least), accuracy)
    return y * horner([kind.sign ** (k + 1) * horner(row, w) for k, row in enumerate(rows)], y)


def horner(coefficients, z: Array) -> Array:
    """Evaluate a polynomial in z; the coefficients ascend and are scalars or arrays."""
    total = jnp.full_like(z, 0.0) + coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * z + c
    return total


@jax.custom_jvp
def polar(v: Array, x: Array) -> tuple[Array, Array, Array, Array]:
    """Return s / 2, log(s / 2), asinh(v / x), x / (v + s); s = sqrt(v^2 + x^2) may overflow."""
    m, flat = jnp.maximum(v, x), v < x
    r = jnp.minimum(v, x) / m
    q = jnp.sqrt(1 + r * r)
    half = 0.5 * m * q
    gentle = r + r * r / (1 + q)
    u = jnp.where(flat, 1 + gentle, (1 + q) * (v / x))  # exp(asinh(v / x))
    steep = ~flat & (r < jnp.finfo(x.dtype).tiny ** 0.5)  # where u might overflow
    log_half, log_u = jnp.log(half), jnp.log(jnp.where(steep, x, u))
    rounded = jnp.where(flat, (gentle - (u - 1)) / u, 0.0)  # log1p by the rounding error of u
    return half, log_half, jnp.where(steep, log(4) + log_half - log_u, log_u + rounded), 1 / u


@polar.defjvp
def _polar_coordinates_jvp(primals, tangents):
    # autodiff would halve derivatives at v = x and lose digits of the last output for x >> v
    (v, x), (dv, dx) = primals, tangents
    half, log_half, angle, tilt = polar(v, x)
    y = 0.5 / half
    along = 0.5 * ((v * y) * dv + (x * y) * dx)
    turn = y * dv - (v * y) * (dx / x)
    open_up = (v * y) * (0.5 * dx / (0.5 * v + half)) - tilt * (y * dv)
    return (half, log_half, angle, tilt), (along, along / half, turn, open_up)


def _v_over_s_plus_x(v: Array, x: Array) -> Array:
    """Return v / (s + x) with s = sqrt(v^2 + x^2), without overflow."""
    return 0.25 * v / (0.5 * polar(v, x)[0] + 0.25 * x)


def _log_tail(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return -log(s / 2) / 2 plus the sum over k."""
    half, log_half, _, _ = polar(v, x)
    y = 0.5 / half
    return expansion(kind, (v * y) ** 2, y) - 0.5 * log_half


def _log_tail_derivative(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return the derivative of `_log_tail` in x."""
    return jax.jvp(lambda x: _log_tail(kind, v, x), (x,), (jnp.ones_like(x),))[1]
