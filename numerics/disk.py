"""I_v and K_v near the origin, where s = sqrt(v^2 + x^2) is too small for the uniform expansion.

I_v = (x/2)^v / Gamma(1 + v) times its power series (DLMF 10.25.2), all terms positive.
K_v = (2/x)^v times a pair found at the order t = v - round(v), |t| <= 1/2, and carried up by the
recurrence of K, again all positive. The pair is Temme's series for x < 1 (Temme 1975,
doi:10.1016/0021-9991(75)90082-0) and the trapezoidal rule on DLMF 10.32.9 above, which converges
geometrically. All loops are unrolled and branch-free: they fuse into one pass over the points.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.numerics.coefficients import reciprocal_gamma
from jaxgpu.numerics.uniform import horner


class Size(NamedTuple):
    """How many terms a precision needs; each is the least that leaves the error to rounding."""

    edge: float  # s from which the uniform expansion is used
    uniform: int  # terms of it
    series: int  # terms of the power series of I at x = edge
    temme: int  # terms of Temme's series at x = 1
    nodes: int  # nodes of the trapezoidal rule
    step: tuple[float, float]  # (a, b) of its step log(1 + 1 / (a + b sqrt(x)))
    gamma: int  # degree of the reciprocal gamma polynomial


DOUBLE = Size(edge=24.0, uniform=16, series=41, temme=9, nodes=19, step=(1.940, 1.782), gamma=14)
SINGLE = Size(edge=10.0, uniform=6, series=19, temme=5, nodes=8, step=(0.532, 1.109), gamma=8)


def series(v: Array, y: Array, size: Size) -> tuple[Array, Array]:
    """F - 1 and F' / F of F(y) = 0F1(; v + 1; y), at y = (x/2)^2.

    Numerator and common denominator are carried apart, so that there is one division in all;
    both are divided by 128 a term to stay in range.
    """
    y = y / 128
    top, slope, bottom = jnp.ones_like(y), jnp.zeros_like(y), jnp.ones_like(y)
    tail = y
    for k in range(size.series, 0, -1):
        slope = slope * y + top
        tail = y * top
        bottom = bottom * ((v + k) * (k / 128))
        top = tail + bottom
    return tail / bottom, slope / (128 * top)


def gamma_parts(v: Array, size: Size) -> tuple[Array, Array, Array]:
    """(p, g, n) with 1 / Gamma(1 + v) = (1 + g) / p, p = 1 where n = round(v) is 0."""
    n = jnp.round(v)
    t = v - n
    factors = [jnp.where(j <= n, t + j, 1.0) for j in range(1, int(size.edge) + 1)]
    while len(factors) > 1:  # pairwise: short chains of dependent products
        factors = [a * b for a, b in zip(factors[::2], [*factors[1::2], 1.0])]
    return factors[0], t * horner(reciprocal_gamma(size.gamma), t), n


def log_series(v: Array, x: Array, size: Size) -> tuple[Array, Array]:
    """(u, fix) with I_v = (x/2)^v u exp(fix); the pair keeps its digits where I_v is nearly 1."""
    f, _ = series(v, 0.25 * x * x, size)
    p, g, n = gamma_parts(v, size)
    near = f + g + f * g
    u = jnp.where(n == 0, 1 + near, (1 + near) / p)
    return u, jnp.where(n == 0, (near - (u - 1)) / u, 0.0)


def pair(v: Array, x: Array, log_half: Array, size: Size) -> tuple[Array, Array, Array]:
    """(h_n, h_{n+1}, n): h_m = (x/2)^m K_{t+m}, m up to n = round(v), times e^x where x >= 1."""
    n = jnp.round(v)
    t, near = v - n, x < 1
    small = _temme(t, jnp.where(near, x, 0.5), jnp.where(near, log_half, -1.0), size)
    large = _trapezoid(t, jnp.where(near, 2.0, x), size)
    h, up = (jnp.where(near, a, b) for a, b in zip(small, large))
    y = x * x * 0.25
    for m in range(1, int(size.edge) + 1):
        h, up = jnp.where(m <= n, up, h), jnp.where(m <= n, y * h + (t + m) * up, up)
    return h, up, n


def _temme(t: Array, x: Array, log_half: Array, size: Size) -> tuple[Array, Array]:
    """K_t and (x/2) K_{t+1}, sum_k c_k f_k and sum_k c_k (p_k - k f_k), with c_k = (x/2)^2k / k!.

    f, p and q are carried times w = prod_j (j^2 - t^2), which leaves one division for the sums.
    """
    rg = reciprocal_gamma(size.gamma)
    t2, lift = t * t, -t * log_half
    odd, rise = horner(rg[0::2], t2), t2 * horner(rg[1::2], t2)
    above, below = 1 + (rise + t * odd), 1 + (rise - t * odd)  # 1 / Gamma(1 + t), 1 / Gamma(1 - t)
    excess = rise * (2 + rise) - t2 * odd * odd  # above * below = 1 + excess
    product = 1 / (1 + excess)
    e = jnp.exp(lift)
    d = 1 / e
    small = jnp.abs(lift) < 0.7
    near, far = jnp.where(small, lift, 0.0) ** 2, jnp.where(small, 1.0, lift)
    cosh = jnp.where(small, _taylor(near, 0), 0.5 * (e + d) - 1)  # cosh(lift) - 1
    sinh = jnp.where(small, _taylor(near, 1), 0.5 * (e - d) / far - 1)  # sinh(lift) / lift - 1
    # what is small where t is comes last: the sum keeps its digits where K is nearly 1
    f = (log_half + odd) + (odd * cosh + log_half * (sinh + rise + sinh * rise))
    f = f * (excess * product) - f
    p, q = 0.5 * e / above, 0.5 * d / below
    first, second = f, p
    y, w = x * x * 0.25, jnp.ones_like(x)
    c, low, high = w, jnp.zeros_like(x), jnp.zeros_like(x)
    for k in range(1, size.temme + 1):
        step = k * k - t * t
        f, p, q = k * f + p + q, p * (k + t), q * (k - t)
        c, w = c * (y / k), w * step
        low, high = low * step + c * f, high * step + c * (p - k * f)
    return first + low / w, second + high / w


def _trapezoid(t: Array, x: Array, size: Size) -> tuple[Array, Array]:
    """e^x K_t and e^x (x/2) K_{t+1}; K_v = int_0^inf exp(-x cosh r) cosh(v r) dr."""
    # f = exp(h): any step h near this one sums to full precision, so that how it depends on x is
    # no part of the answer; h is taken back from f, to agree with it in the last digit
    a, b = size.step
    f = 1 + 1 / (a + b * jnp.sqrt(jax.lax.stop_gradient(x)))
    h = jnp.log(f)
    tilt = jnp.exp(t * h)
    rise, fall, tilt, back = (_powers(r, size.nodes) for r in (f, 1 / f, tilt, 1 / tilt))
    low = high = jnp.full_like(x, 0.5)
    for f, g, e, d in zip(rise, fall, tilt, back):
        weight = 0.5 * jnp.exp(x - x * (0.5 * (f + g)))
        low, high = low + weight * (e + d), high + weight * (f * e + g * d)
    return h * low, (0.5 * h) * x * high


def _powers(f: Array, count: int) -> list[Array]:
    """f, f^2, ..., each by at most log2(count) products in a row, so that few roundings add up."""
    powers = [f, f]
    for j in range(2, count + 1):
        powers.append(powers[j // 2] * powers[j - j // 2])
    return powers[1:]


def _taylor(z2: Array, odd: int) -> Array:
    """cosh(z) - 1, or sinh(z) / z - 1 if `odd`, for |z| < 0.7."""
    total = jnp.zeros_like(z2)
    for k in (14, 12, 10, 8, 6, 4, 2):
        total = (total + 1) * z2 * (1 / (k * (k - 1 + 2 * odd)))
    return total
