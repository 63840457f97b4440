"""The Matern covariance of any real smoothness, with its derivatives in smoothness and distance.

    k(r) = 2^(1-v) / Gamma(v) x^v K_v(x),    x = sqrt(2 v) r / length

Rasmussen & Williams (2006), ISBN 026218253X, equation 4.14. k is 1 at r = 0; for v > 1 its
derivatives there are 0 and -v / ((v - 1) length^2), which differentiation of the formula as it
stands would turn into nan.
"""

from math import log

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.numerics import disk
from jaxgpu.numerics.arguments import prepare
from jaxgpu.numerics.branches import Kind, log_bessel, size_of
from jaxgpu.numerics.hypergeometric import steep
from jaxgpu.precision import scope


def matern(r: ArrayLike, smoothness: ArrayLike, length: ArrayLike = 1.0) -> Array:
    """Matern covariance at distance `r`, for unit variance.

    Args:
        r: distance, at least 0; broadcasts with the others.
        smoothness: v > 0; 1/2 is exp(-r / length), infinity a Gaussian (not included).
        length: scale of `r`, positive.

    Differentiable in all three; twice in `r` also at r = 0, where v > 1.

    >>> matern(2.0, 0.5)  # exp(-2)
    Array(0.13533..., dtype=float32)
    """
    v, r, dtype = prepare("matern", smoothness, r)
    _, length, _ = prepare("matern", smoothness, length)
    with scope(r):
        x = jnp.sqrt(2 * v) * r / length.astype(r.dtype)
        known = (v > 0) & (v < jnp.inf) & (x >= 0)
        value = _shape(jnp.where(known, v, 1.0), jnp.where(known, x, 1.0))
        return jnp.where(known, value, jnp.nan).astype(dtype)


@jax.custom_jvp
def _shape(v: Array, x: Array) -> Array:
    """M_v(x) = x^v K_v(x) / (2^(v-1) Gamma(v))."""
    return jnp.where(x > 0, jnp.exp(_log_shape(v, jnp.where(x > 0, x, 1.0))), 1.0)


@_shape.defjvp
def _shape_jvp(primals, tangents):
    (v, x), (dv, dx) = primals, tangents
    with scope(x):
        value, away = _shape(v, x), jnp.where(x > 0, x, 1.0)
        _, by_v = jax.jvp(lambda v: _log_shape(v, away), (v,), (jnp.ones_like(v),))
        by_v = jnp.where(x > 0, value * by_v, 0.0)
        # M_v' = -x M_{v-1} / (2 (v - 1)), or where v <= 1 the Bessel function itself
        smooth = v > 1
        lower = jnp.where(smooth, v - 1, 1.0)
        # a kink of M_{v-1} at 0 is met by the factor x; keep its slope of -infinity out of it
        there = (x > 0) | (lower > 1)
        by_x = -x * jnp.where(there, _shape(lower, jnp.where(there, x, 1.0)), 1.0) / (2 * lower)
        rough = jnp.where(smooth, 0.5, v)
        kink = rough * jnp.log(away) + log_bessel(Kind(-1, False, False), 1 - rough, away)
        kink = -jnp.exp(kink - (rough - 1) * log(2) - _log_gamma(rough, size_of(x)))
        start = jnp.where(
            rough > 0.5, 0.0, jnp.where(rough == 0.5, -1.0, -jnp.inf * jnp.ones_like(x))
        )
        by_x = jnp.where(smooth, by_x, jnp.where(x > 0, kink, start))
    return value, by_v * dv + by_x * dx


def _log_shape(v: Array, x: Array) -> Array:
    """log M_v(x), x > 0."""
    size = size_of(x)
    large = v >= size.edge
    low = jnp.where(large, 1.0, v)
    direct = low * (jnp.log(x) - log(2)) + log_bessel(Kind(-1, False, False), low, x)
    direct = direct + log(2) - _log_gamma(low, size)
    return jnp.where(large, steep(jnp.where(large, v, size.edge), x * x, size, -1), direct)


def _log_gamma(v: Array, size: disk.Size) -> Array:
    """lnGamma(v), 0 < v < size.edge."""
    p, g, _ = disk.gamma_parts(v, size)
    return jnp.log(p) - jnp.log1p(g) - jnp.log(v)
