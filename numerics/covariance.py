"""The Matern covariance of any real smoothness, and its derivatives in smoothness and distance.

    k(r) = 2^(1-v) / Gamma(v) x^v K_v(x),    x = sqrt(2 v) r / length

Rasmussen & Williams (2006), ISBN 026218253X, equation 4.14. M_v(x) denotes the right side. k is 1
at r = 0; for v > 1 its first two derivatives there are 0 and -v / ((v - 1) length^2), where direct
differentiation of the formula would give nan.
"""

from functools import partial
from math import log

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero
from jax.typing import ArrayLike

from jaxgpu.devices.precision import scope
from jaxgpu.inputs.explanations import explain_errors, keeps_64_bits

from .arguments import broadcast
from .bessel.branches import log_bessel
from .bessel.debye import BesselKind, edge
from .bessel.hypergeometric import log_gamma, log_normalized_bessel


@explain_errors
@keeps_64_bits
def matern(r: ArrayLike, smoothness: ArrayLike, length: ArrayLike = 1.0) -> Array:
    """Return the Matern covariance at distance `r`, for unit variance.

    Args:
        r: distance, at least 0; broadcasts with the others.
        smoothness: v > 0; 1/2 is exp(-r / length), infinity a Gaussian (not included).
        length: scale of `r`, positive.

    Differentiable in all three arguments, also at r = 0. There the first derivative in `r` is
    -infinity for v < 1/2, and the second is infinite for v <= 1, except at v = 1/2, where both are
    those of the exponential.

    >>> matern(2.0, 0.5)  # exp(-2)
    Array(0.13533..., dtype=float32)
    """
    given = {"r": r, "smoothness": smoothness, "length": length}
    (r, v, length), dtype = broadcast("matern", given)
    with scope(r):
        known = (v > 0) & (v < jnp.inf) & (r >= 0) & (length > 0)
        known &= (r < jnp.inf) | (length < jnp.inf)
        far = jnp.sqrt(2 * v) * r / length == jnp.inf
        value = _covariance(*(jnp.where(known & ~far, a, 1.0) for a in (v, r, length)))
        return jnp.where(known, jnp.where(far, 0.0, value), jnp.nan).astype(dtype)


@jax.custom_jvp
def _covariance(v: Array, r: Array, length: Array) -> Array:
    """Return the Matérn covariance of smoothness v at distance r for a length scale."""
    x = jnp.sqrt(2 * v) * r / length
    return jnp.where(x > 0, jnp.exp(_log_matern(v, jnp.where(x > 0, x, 1.0))), 1.0)


@partial(_covariance.defjvp, symbolic_zeros=True)
def _covariance_jvp(primals, tangents):
    (v, r, length), (dv, dr, dlength) = primals, tangents
    with scope(r):
        value, by_r = _covariance(v, r, length), _distance_derivative(v, r, length)
        # at r = 0 the product r k' is 0, even if k' or k'' is infinite there
        apart = r > 0
        tame = jnp.where(apart | (v >= 0.5), by_r, 0.0)
        pull = r * jnp.where(apart | (v > 1), tame, jax.lax.stop_gradient(tame))
        tangent = jnp.zeros_like(value)
        if not isinstance(dv, SymbolicZero):
            away = jnp.where(apart, jnp.sqrt(2 * v) * r / length, 1.0)
            _, by_v = jax.jvp(lambda v: _log_matern(v, away), (v,), (jnp.ones_like(v),))
            tangent = tangent + (jnp.where(apart, value * by_v, 0.0) + pull / (2 * v)) * dv
        if not isinstance(dr, SymbolicZero):
            tangent = tangent + by_r * dr
        if not isinstance(dlength, SymbolicZero):
            tangent = tangent - pull / length * dlength
    return value, tangent


def _distance_derivative(v: Array, r: Array, length: Array) -> Array:
    """Return dk/dr: from M_v' = -x M_{v-1} / (2 (v - 1)) for v > 1, else from K_{1-v}."""
    smooth, apart = v > 1, r > 0
    lower = jnp.where(smooth, v - 1, 1.0)
    # the factor r cancels the kink of M_{v-1} at 0; exclude its derivative of -infinity
    there = apart | (lower > 1)
    inner = _covariance(lower, jnp.where(there, r, 1.0), length * jnp.sqrt(lower / (lower + 1)))
    soft = -r * jnp.where(there, inner, 1.0) * ((lower + 1) / lower) / length**2
    rough = jnp.where(smooth, 0.5, v)
    scale = jnp.sqrt(2 * rough) / length
    x = jnp.where(apart, scale * r, 1.0)
    kink = rough * jnp.log(x) + log_bessel(BesselKind(-1), 1 - rough, x)
    kink = -scale * jnp.exp(kink - (rough - 1) * log(2) - _log_gamma(rough))
    start = jnp.where(rough > 0.5, 0.0, jnp.where(rough == 0.5, -1 / length, -jnp.inf))
    kink = jnp.where(apart, kink, start + _zero_with_curvature(rough, r, length))
    return jnp.where(smooth, soft, kink)


@jax.custom_jvp
def _zero_with_curvature(v: Array, r: Array, length: Array) -> Array:
    """Return 0, with the derivative k''(0) in r, for v <= 1."""
    return jnp.zeros_like(r)


@_zero_with_curvature.defjvp
def _zero_with_curvature_jvp(primals, tangents):
    v, r, length = primals
    bend = jnp.where(v > 0.5, -jnp.inf, jnp.where(v == 0.5, length**-2, jnp.inf))
    return jnp.zeros_like(r), jnp.where(r > 0, 0.0, bend) * tangents[1]


def _log_matern(v: Array, x: Array) -> Array:
    """Return log M_v(x) for x > 0."""
    large = v >= edge(x)
    low = jnp.where(large, 1.0, v)
    direct = low * (jnp.log(x) - log(2)) + log_bessel(BesselKind(-1), low, x)
    direct = direct + log(2) - _log_gamma(low)
    return jnp.where(
        large, log_normalized_bessel(BesselKind(-1), jnp.where(large, v, edge(x)), x * x), direct
    )


def _log_gamma(v: Array) -> Array:
    """Return log Gamma(v) for 0 < v < edge."""
    return log_gamma(v) - jnp.log(v)
