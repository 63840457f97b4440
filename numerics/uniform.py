"""log I_v and log K_v by one uniform expansion, wherever s = sqrt(v^2 + x^2) is large.

    log I = s - v a - log(2 pi s) / 2 + sum_k D_k(w) / s^k,    w = (v / s)^2,
    log K = -(s - v a) + log(pi / (2 s)) / 2 + sum_k (-1)^k D_k(w) / s^k,    a = asinh(v / x),

which is Debye's expansion (DLMF 10.41.3-4) for v > 0 and Hankel's (10.40.1-2) at v = 0. Both
derivatives have the same form with other polynomials, and the ratios need no difference of
logarithms. `sign` is +1 for I and -1 for K throughout.
"""

from math import log, pi
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.numerics.coefficients import Rows, uniform


class Polar(NamedTuple):
    """(v, x) as a length and an angle, all scaled by a power of two so that nothing overflows."""

    v: Array  # [...] scale * v
    x: Array  # [...] scale * x
    s: Array  # [...] scale * s
    scale: Array  # [...] 1, or less where v or x is huge
    log_scale: Array  # [...]


class Parts(NamedTuple):
    """The value (rest + weight (log(u) + fix)) / scale + offset: branches share one logarithm."""

    rest: Array
    weight: Array
    u: Array
    fix: Array
    scale: Array
    offset: Array


def polar(v: Array, x: Array) -> Polar:
    """Length of (v, x); exact derivatives also on v = x, where a maximum would have a tie."""
    edge, shift = _powers(x)
    huge, one = jnp.maximum(v, x) > 2.0**edge, jnp.ones_like(x)
    c = jnp.where(huge, 2.0**-shift, one)
    v, x = v * c, x * c
    return Polar(v, x, jnp.sqrt(v * v + x * x), c, jnp.where(huge, -shift * log(2), 0 * one))


def parts(v: Array, x: Array, p: Polar, log_s: Array, terms: int, sign: int, scaled: bool) -> Parts:
    """log I (minus x if `scaled`) or log K (plus x); `log_s` is the logarithm of p.s."""
    even, odd = _sums(uniform(terms).log, p)
    rest = p.v * (p.v / (p.s + p.x)) if scaled else p.s
    u, fix = _exp_angle(v, x, p)
    offset = even + sign * odd - 0.5 * (log_s - p.log_scale)
    offset = offset - 0.5 * (log(2 * pi) if sign > 0 else log(2 / pi))
    return Parts(sign * rest, -sign * p.v, u, fix, p.scale, offset)


def slope(v: Array, x: Array, terms: int, sign: int, lead: float = 1.0) -> Array:
    """Derivative of the logarithm in x; with lead = 0 of the scaled function."""
    p = polar(v, x)
    sigma = lead + (p.v / (p.s + p.x)) * (v / x)  # s / x in the form whose derivative is exact
    return sign * sigma - _correction(p, terms, sign)


def order_slope(v: Array, x: Array, terms: int, sign: int) -> Array:
    """Derivative of the logarithm in v."""
    p = polar(v, x)
    even, odd = _sums(uniform(terms).order, p)
    return -sign * angle(v, x) - (p.v / p.s) * (p.scale / p.s) * (0.5 + even + sign * odd)


def ratio(v: Array, x: Array, terms: int, sign: int) -> Array:
    """I_{v+1} / I_v, or K_{v+1} / K_v; v > -1."""
    p = polar(v, x)
    if sign > 0:
        even, odd = _sums(uniform(terms).slope, p)
        return _half_tangent(v, x) * (1 - (1 + p.v / p.s) * (p.scale / p.s) * (0.5 + even + odd))
    return v / x - slope(v, x, terms, sign)


def _correction(p: Polar, terms: int, sign: int) -> Array:
    """Minus the derivative in x of the terms beyond +-(s - v a)."""
    even, odd = _sums(uniform(terms).slope, p)
    return (p.x / p.s) * (p.scale / p.s) * (0.5 + even + sign * odd)


def _sums(rows: Rows, p: Polar) -> tuple[Array, Array]:
    """Sums of the even and of the odd powers of 1 / s."""
    return expansion(rows, (p.v / p.s) ** 2, p.scale / p.s)


def expansion(rows: Rows, w: Array, y: Array) -> tuple[Array, Array]:
    """Sums over even and over odd k of row k, a polynomial in w, times y^k."""
    terms = [horner(row, w) for row in rows]
    even, odd = horner([0.0, *terms[1::2]], y * y), horner(terms[0::2], y * y)
    return even, odd * y


def horner(coefficients, z: Array) -> Array:
    """Polynomial in z; coefficients ascend and are numbers or arrays."""
    total = (
        jnp.full_like(z, coefficients[-1])
        if isinstance(coefficients[-1], float)
        else coefficients[-1]
    )
    for c in coefficients[-2::-1]:
        total = total * z + c
    return total


def _exp_angle(v: Array, x: Array, p: Polar) -> tuple[Array, Array]:
    """(u, fix) with asinh(v / x) = log(u) + fix, to full relative precision for all v / x."""
    edge, shift = _powers(x)
    small = x < 2.0**-edge
    k = jnp.where(small, 2.0**shift, jnp.where(x > 1, p.scale, 1.0))
    lift = jnp.where(small, shift * log(2) - p.log_scale, jnp.where(x > 1, 0.0, -p.log_scale))
    steep = (p.v + p.s) / (x * k)
    gentle = (p.v + p.v * (p.v / (p.x + p.s))) / p.x
    u = jnp.where(v < x, 1 + gentle, steep)
    return u, jnp.where(v < x, (gentle - (u - 1)) / u, lift)  # log1p by its rounding error


@jax.custom_jvp
def angle(v: Array, x: Array) -> Array:
    """asinh(v / x)."""
    u, fix = _exp_angle(v, x, polar(v, x))
    return jnp.log(u) + fix


@angle.defjvp
def _angle_jvp(primals, tangents):
    (v, x), (dv, dx) = primals, tangents
    p = polar(v, x)
    return angle(v, x), (dv - (v / x) * dx) * (p.scale / p.s)


@jax.custom_jvp
def _half_tangent(v: Array, x: Array) -> Array:
    """x / (v + s), the tangent of half the angle of (v, x)."""
    p = polar(v, x)
    return p.x / (p.v + p.s)


@_half_tangent.defjvp
def _half_tangent_jvp(primals, tangents):
    # plain differentiation would subtract nearly equal numbers where x >> v
    (v, x), (dv, dx) = primals, tangents
    p = polar(v, x)
    along = (p.v * dx - p.x * dv) / p.s
    return _half_tangent(v, x), along * (p.scale / (p.v + p.s))


def _powers(x: Array) -> tuple[int, int]:
    """Binary exponents beyond which squares are scaled, and by how much."""
    return (500, 600) if x.dtype == jnp.float64 else (60, 70)
