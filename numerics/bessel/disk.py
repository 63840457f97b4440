"""I_v and K_v near the origin, where s = sqrt(v^2 + x^2) is too small for the uniform expansion.

I_v is (x/2)^v / Gamma(1 + v) times its power series (DLMF 10.25.2), whose terms are all positive.
K_v starts from the order t = v - round(v), |t| <= 1/2: by Temme's series for x < NEAR (Temme 1975,
doi:10.1016/0021-9991(75)90082-0), and by a polynomial in log x and t^2 for larger x. The recurrence
in the order, again with positive terms only, then leads up to v. All loops are unrolled and
branch-free, so they fuse into one pass over the points.
"""

from math import log, pi, prod, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .coefficients import low_order_k, reciprocal_gamma
from .debye import BesselKind, edge, horner


class TermCounts(NamedTuple):
    """Numbers of terms for a precision, each the smallest that leaves the error to rounding."""

    series: int  # terms of the power series of I at x = edge
    temme: int  # terms of Temme's series at x = NEAR
    smooth: tuple[int, int]  # terms in log x and in the square of the order
    gamma: int  # degree of the reciprocal gamma polynomial
    tiny: float  # the square of K_edge cannot overflow for x >= tiny


DOUBLE = TermCounts(series=41, temme=7, smooth=(29, 8), gamma=17, tiny=2.0**-15)
SINGLE = TermCounts(series=19, temme=4, smooth=(13, 5), gamma=10, tiny=0.1875)

TEMME_LIMIT = 0.375  # Temme's series gives K for x < NEAR; for larger x it loses digits


def term_counts(x: Array) -> TermCounts:
    """Return the numbers of terms for the dtype of `x`."""
    return DOUBLE if x.dtype == jnp.float64 else SINGLE


def hyp0f1_series(v: Array, y: Array) -> tuple[Array, Array]:
    """Return F - 1 and F' / F of F = 0F1(; v + 1; y), for v > -1 and y <= (edge / 2)^2.

    Numerator and common denominator are accumulated separately, so each sum needs one division.
    """
    c = jnp.where(v < edge(v), 1.0, jax.lax.stop_gradient(16 / (v + 1))) / 128
    y, v = y * c, v * c  # c cancels; it keeps the products in range
    top = tail = bottom = jnp.ones_like(y)
    slope = jnp.zeros_like(y)
    for k in range(term_counts(y).series, 0, -1):
        slope = slope * y + top
        tail, bottom = y * top, bottom * ((v + k * c) * k)
        top = tail + bottom
    return tail / bottom, c * slope / top


def gamma_parts(v: Array) -> tuple[Array, Array, Array]:
    """Return (p, g, n): 1 / Gamma(1 + v) = (1 + g) / p, n = round(v), and p = 1 where n = 0."""
    n = jnp.round(v)
    t = v - n
    factors = (jnp.where(j <= n, t + j, 1.0) for j in range(1, int(edge(v)) + 1))
    p = prod(factors, start=jnp.ones_like(t))
    return p, t * horner(reciprocal_gamma(term_counts(v).gamma), t), n


def log_bessel(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return log I_v or log K_v."""
    if kind.sign > 0:
        f, (p, g, n) = hyp0f1_series(v, 0.25 * x * x)[0], gamma_parts(v)
        near = f + g + f * g
        u = (1 + near) / p
        rounded = jnp.where(n == 0, (near - (u - 1)) / u, 0.0)  # log1p by the rounding error of u
        return v * log_half(x) + (jnp.log(u) + rounded) - (x if kind.scaled else 0.0)
    low, _ = _adjacent_k(v, x)
    shift = jnp.where(x < term_counts(x).tiny, -jnp.round(v) * log_half(x), 0.0)
    grown = jnp.where(x < TEMME_LIMIT, x if kind.scaled else 0.0, 0.0 if kind.scaled else -x)
    part = jnp.where(x < TEMME_LIMIT, 1.0, jax.lax.rsqrt(x * (2 / pi)))
    return grown + (jnp.log(low * part) + shift)


def derivative(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return the derivative of `log_bessel` in x."""
    return v / x + kind.sign * (ratio(kind, v, x) - float(kind.scaled))


def ratio(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return I_{v+1} / I_v or K_{v+1} / K_v."""
    if kind.sign > 0:
        return 0.5 * x * hyp0f1_series(v, 0.25 * x * x)[1]
    low, high = _adjacent_k(v, x)
    return high / low * jnp.where(x < term_counts(x).tiny, 2 / x, 1.0)


def log_half(x: Array) -> Array:
    """Return log(x / 2) even if x / 2 underflows."""
    tiny = x < term_counts(x).tiny
    whole = jnp.log(jnp.where(tiny, x, 0.5 * x))
    return jnp.where(tiny, whole - log(2), whole)


def _adjacent_k(v: Array, x: Array) -> tuple[Array, Array]:
    """Return K_v and K_{v+1}, multiplied by sqrt(2 x / pi) e^x for x >= NEAR.

    For x < tiny they are multiplied by (x/2)^n and (x/2)^(n+1) instead, n = round(v).
    """
    n, near, tiny = jnp.round(v), x < TEMME_LIMIT, x < term_counts(x).tiny
    t, lower = v - n, jnp.where(tiny, 1.0, 0.5 * x)
    small = _temme_series(t, jnp.where(near, x, TEMME_LIMIT), jnp.where(near, log_half(x), -1.0))
    large = _k_polynomial(t, jnp.where(near, 1.0, x), jnp.where(near, -0.7, log_half(x)))
    low, high = jnp.where(near, small[0], large[0]), jnp.where(near, small[1] / lower, large[1])
    # K_{m+1} = K_{m-1} + (2 / x) m K_m
    rise, fall = 1 / lower, jnp.where(tiny, 0.25 * x * x, 1.0)
    here, above = low, high
    for m in range(1, int(edge(x)) + 1):
        low, high = high, fall * low + (m + t) * rise * high
        here, above = jnp.where(m == n, low, here), jnp.where(m == n, high, above)
    return here, above


def _temme_series(t: Array, x: Array, half: Array) -> tuple[Array, Array]:
    """Return K_t and (x/2) K_{t+1} by Temme's series, with c_k = (x/2)^2k / k!.

    They are sum_k c_k f_k and sum_k c_k (p_k - k f_k). The recurrence has f, p and q times
    w = prod_j (j^2 - t^2), so the sums need a single division.
    """
    size = term_counts(x)
    rg, t2 = reciprocal_gamma(size.gamma), t * t
    odd, rise = horner(rg[0::2], t2), t2 * horner(rg[1::2], t2)
    above, below = 1 + (rise + t * odd), 1 + (rise - t * odd)  # 1 / Gamma(1 + t), 1 / Gamma(1 - t)
    excess = rise * (2 + rise) - t2 * odd * odd  # above * below = 1 + excess
    lift = -t * half
    e = jnp.exp(lift)
    d = 1 / e
    small = jnp.abs(lift) < 1.2
    z = jnp.where(small, lift, 0.0) ** 2
    cosh = jnp.where(small, _cosh_sinh_taylor(z, 0), 0.5 * (e + d) - 1)  # cosh(lift) - 1
    far = 0.5 * (e - d) / jnp.where(small, 1.0, lift) - 1
    sinh = jnp.where(small, _cosh_sinh_taylor(z, 1), far)  # sinh(lift) / lift - 1
    # terms that vanish with t, and the sums, are added before the single large term, so the
    # result keeps its digits where K is nearly 1
    lead = half + odd
    change = ((half - lead) + odd) + odd * cosh + half * (sinh + rise + sinh * rise)
    change = change - (lead + change) * (excess / (1 + excess))
    f = -lead - change
    p, q = 0.5 * e / above, 0.5 * d / below
    second = p
    y, c, w = x * x * 0.25, jnp.ones_like(x), jnp.ones_like(x)
    low = high = jnp.zeros_like(x)
    for k in range(1, size.temme + 1):
        step = k * k - t2
        f, p, q = k * f + p + q, p * (k + t), q * (k - t)
        c, w = c * (y / k), w * step
        low, high = low * step + c * f, high * step + c * (p - k * f)
    return (low / w - change) - lead, second + high / w


def _cosh_sinh_taylor(z: Array, odd: int) -> Array:
    """Return cosh(sqrt z) - 1, or sinh(sqrt z) / sqrt z - 1 if `odd`, for z < 1.44."""
    total = jnp.zeros_like(z)
    for k in range(18, 0, -2):
        total = (total + 1) * z * (1 / (k * (k - 1 + 2 * odd)))
    return total


def _k_polynomial(t: Array, x: Array, half: Array) -> tuple[Array, Array]:
    """Return K_t and K_{t+1} times sqrt(2 x / pi) e^x, i.e. 1 + (t^2 - 1/4) G and a sum with G'."""
    low, high = TEMME_LIMIT, edge(x)
    width = 0.5 * log(high / low)
    z = (half + log(2 / sqrt(low * high))) / width
    powers = [horner(row, 4 * t * t) for row in low_order_k(low, high, term_counts(x).smooth)]
    g, slope = horner(powers, z), horner([k * c for k, c in enumerate(powers)][1:], z) / width
    here = 1 + (t - 0.5) * (t + 0.5) * g
    above = here + (t + 0.5) / x * (1 + (t - 0.5) * ((t + 0.5) * g - slope))
    # both are positive; the call keeps LLVM 22 from following all 2^24 paths of the recurrence
    return jnp.abs(here), jnp.abs(above)
