"""One cut through the (v, x) plane: which form gives log I_v and log K_v, and their derivatives.

Inside the quarter disk s < edge the forms of jaxgpu.numerics.disk hold, outside the uniform
expansion. Orders here are not negative.
"""

from functools import partial
from math import inf, log
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero

from jaxgpu.numerics import disk, uniform
from jaxgpu.precision import scope


class Kind(NamedTuple):
    """Which function is asked for: the static part of a call."""

    sign: int  # +1 for I, -1 for K
    scaled: bool  # log of exp(-x) I or exp(x) K
    outside: bool  # every order is known to lie outside the disk


def size_of(x: Array) -> disk.Size:
    """Numbers of terms for the dtype of `x`."""
    return disk.DOUBLE if x.dtype == jnp.float64 else disk.SINGLE


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def log_bessel(kind: Kind, v: Array, x: Array) -> Array:
    """log I_v or log K_v for v >= 0; `v` and `x` of one shape and dtype."""
    size = size_of(x)
    inside, inner, outer = split(v, x)
    p = uniform.polar(*outer)
    if kind.outside:
        value = _assemble(uniform.parts(*outer, p, jnp.log(p.s), size.uniform, *kind[:2]))
    else:
        # one logarithm serves s outside the disk and x / 2 inside, a second all the rest
        tiny = inner[1] < 1  # where x / 2 could underflow
        log_b = jnp.log(jnp.where(inside, jnp.where(tiny, inner[1], 0.5 * inner[1]), p.s))
        log_half = jnp.where(tiny, log_b - log(2), log_b)
        far = uniform.parts(*outer, p, log_b, size.uniform, *kind[:2])
        near = _disk_parts(kind, *inner, log_half)
        value = _assemble(uniform.Parts(*(jnp.where(inside, a, b) for a, b in zip(near, far))))
    if kind.sign > 0:
        return _limits(value, v, x, 0.0, -inf, -inf if kind.scaled else inf, -inf)
    return _limits(value, v, x, inf, inf, -inf, inf)


@partial(log_bessel.defjvp, symbolic_zeros=True)
def _log_bessel_jvp(kind, primals, tangents):
    (v, x), (dv, dx) = primals, tangents
    with scope(x):
        out = log_bessel(kind, v, x)
        tangent = jnp.zeros_like(out)
        if not isinstance(dv, SymbolicZero):
            tangent = tangent + order_slope(kind, v, x) * dv
        if not isinstance(dx, SymbolicZero):
            tangent = tangent + slope(kind, v, x) * dx
    return out, tangent


def slope(kind: Kind, v: Array, x: Array) -> Array:
    """Derivative of `log_bessel` in x."""
    size, lead = size_of(x), 0.0 if kind.scaled else 1.0
    inside, (vi, xi), outer = split(v, x)
    value = uniform.slope(*outer, size.uniform, kind.sign, lead)
    if not kind.outside and kind.sign > 0:
        near = vi / xi + 0.5 * xi * disk.series(vi, 0.25 * xi * xi, size)[1] + (lead - 1)
        value = jnp.where(inside, near, value)
    elif not kind.outside:
        h, up, _ = disk.pair(vi, xi, log_half_of(xi), size)
        value = jnp.where(inside, (vi - 2 * (up / h)) / xi - (lead - 1), value)
    if kind.sign > 0:
        return _limits(value, v, x, lead - 1, inf, lead, inf)
    return _limits(value, v, x, -inf, -inf, -lead, -inf)


def order_slope(kind: Kind, v: Array, x: Array) -> Array:
    """Derivative of `log_bessel` in v."""
    size = size_of(x)
    inside, (vi, xi), outer = split(v, x)
    value = uniform.order_slope(*outer, size.uniform, kind.sign)
    if not kind.outside:
        half = log_half_of(xi)

        def near(order: Array) -> Array:
            if kind.sign > 0:
                u, fix = disk.log_series(order, xi, size)
                return jnp.log(u) + fix
            return jnp.log(disk.pair(order, xi, half, size)[0])

        _, change = jax.jvp(near, (vi,), (jnp.ones_like(vi),))
        value = jnp.where(inside, change + half if kind.sign > 0 else change, value)
    if kind.sign > 0:
        return _limits(value, v, x, -inf, -inf, 0.0, -inf)
    return _limits(value, v, x, 0.0, inf, 0.0, inf)


def reflection_weights(m: Array, x: Array) -> tuple[Array, Array, Array]:
    """(a, b, c): I_m / I_m = a exp(c) and (2 / pi) sin(pi m) K_m / I_m = b exp(c), a and b <= 1."""
    excess = log_bessel(Kind(-1, False, False), m, x) - log_bessel(Kind(1, False, False), m, x)
    _, above, n = disk.gamma_parts(m, size_of(x))
    _, below, _ = disk.gamma_parts(n - m, size_of(x))
    odd = jnp.abs(n - 2 * jnp.round(n / 2)) > 0
    # sin(pi t) = pi t / (Gamma(1 + t) Gamma(1 - t)), with a sign for the half turns of m - t
    factor = 2 * jnp.where(odd, n - m, m - n) * (1 + above) * (1 + below)
    lead = jnp.maximum(excess, 0.0)
    return jnp.exp(-lead), factor * jnp.exp(excess - lead), lead


def split(
    v: Array, x: Array, origin: bool = False
) -> tuple[Array, tuple[Array, Array], tuple[Array, Array]]:
    """Whether inside the disk, and the points of either side, harmless ones in place of others.

    With `origin`, x = 0 counts as inside.
    """
    size = size_of(x)
    usual = _usual(v, x) | (origin & (x == 0) & (v < inf))
    inside = usual & (v * v + x * x < size.edge**2)
    outside = usual & ~inside
    inner = jnp.where(inside, v, 1.0), jnp.where(inside, x, 1.0)
    outer = jnp.where(outside, v, size.edge), jnp.where(outside, x, size.edge)
    return inside, inner, outer


def _usual(v: Array, x: Array) -> Array:
    return (x > 0) & (x < inf) & (v < inf)


def _limits(
    value: Array, v: Array, x: Array, origin: float, zero: float, far: float, steep: float
) -> Array:
    """`value`, or its limit at v = x = 0, at x = 0, at x = inf, at v = inf; nan for the rest."""
    limit = jnp.where(x == inf, far, jnp.full_like(value, steep))
    limit = jnp.where(x == 0, jnp.where(v == 0, origin, jnp.full_like(value, zero)), limit)
    known = (x >= 0) & (v >= 0) & ~((x == inf) & (v == inf))
    return jnp.where(_usual(v, x), value, jnp.where(known, limit, jnp.nan))


def _disk_parts(kind: Kind, v: Array, x: Array, log_half: Array) -> uniform.Parts:
    zero, one = jnp.zeros_like(x), jnp.ones_like(x)
    grown = -kind.sign * x if kind.scaled else zero
    if kind.sign > 0:
        u, fix = disk.log_series(v, x, size_of(x))
        return uniform.Parts(zero, one, u, fix, one, v * log_half + grown)
    h, _, n = disk.pair(v, x, log_half, size_of(x))
    grown = jnp.where(x < 1, grown, grown - x)  # the pair holds e^x there
    return uniform.Parts(zero, one, h, zero, one, grown - n * log_half)


def _assemble(p: uniform.Parts) -> Array:
    return (p.rest + p.weight * (jnp.log(p.u) + p.fix)) / p.scale + p.offset


def log_half_of(x: Array) -> Array:
    """log(x / 2); x / 2 itself may underflow."""
    tiny = x < 1
    whole = jnp.log(jnp.where(tiny, x, 0.5 * x))
    return jnp.where(tiny, whole - log(2), whole)
