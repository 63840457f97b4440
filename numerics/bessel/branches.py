"""Choice of the method for log I_v and log K_v in the (v, x) plane, with derivatives and limits.

Inside the quarter disk s < edge the methods of jaxgpu.numerics.bessel.disk are used, outside it the
uniform expansion. Only `ratio` accepts negative orders.
"""

from functools import partial
from math import inf

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero

from jaxgpu.devices.precision import scope

from . import debye, disk
from .debye import BesselKind, edge


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def log_bessel(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return log I_v or log K_v for v >= 0; `v` and `x` have the same shape and dtype."""
    value = _select_region(debye.log_bessel, disk.log_bessel, kind, v, x)
    if kind.sign > 0:
        return _apply_limits(value, v, x, 0.0, -inf, -inf if kind.scaled else inf, -inf)
    return _apply_limits(value, v, x, inf, inf, -inf, inf)


@partial(log_bessel.defjvp, symbolic_zeros=True)
def _log_bessel_jvp(kind, primals, tangents):
    (v, x), (dv, dx) = primals, tangents
    with scope(x):
        out = log_bessel(kind, v, x)
        tangent = jnp.zeros_like(out)
        if not isinstance(dv, SymbolicZero):
            form = partial(_select_region, debye.log_bessel, disk.log_bessel, kind)
            by_v = jax.jvp(lambda v: form(v, x), (v,), (jnp.ones_like(v),))[1]
            ends = (-inf, -inf, 0.0, -inf) if kind.sign > 0 else (0.0, inf, 0.0, inf)
            tangent = tangent + _apply_limits(by_v, v, x, *ends) * dv
        if not isinstance(dx, SymbolicZero):
            by_x = _select_region(debye.derivative, disk.derivative, kind, v, x)
            far = float(not kind.scaled)
            ends = (far - 1, inf, far, inf) if kind.sign > 0 else (-inf, -inf, -far, -inf)
            tangent = tangent + _apply_limits(by_x, v, x, *ends) * dx
    return out, tangent


def ratio(kind: BesselKind, v: Array, x: Array) -> Array:
    """Return I_{v+1} / I_v for v > -1, or K_{v+1} / K_v for v >= -1/2."""
    value = _select_region(debye.ratio, disk.ratio, kind, v, x)
    if kind.sign > 0:
        start = jnp.where(v < inf, value, 0.0)
        return _apply_limits(value, v, x, start, start, 1.0, 0.0)
    return _apply_limits(
        value, v, x, inf, jnp.where(v == -0.5, 1.0, inf * jnp.ones_like(x)), 1.0, inf
    )


def _select_region(outer, inner, kind: BesselKind, v: Array, x: Array) -> Array:
    """Evaluate `outer` or `inner` at each point; the unused one gets harmless arguments."""
    usual = (x >= 0) & (x < inf) & (v < inf)
    inside = usual & (v * v + x * x < edge(x) ** 2)
    outside = usual & ~inside
    value = outer(kind, jnp.where(outside, v, edge(x)), jnp.where(outside, x, edge(x)))
    if kind.least >= edge(x):
        return value
    return jnp.where(
        inside, inner(kind, jnp.where(inside, v, 1.0), jnp.where(inside, x, 1.0)), value
    )


def _apply_limits(value, v, x, origin, zero, far, steep) -> Array:
    """Return `value`, or its limit at v = x = 0, x = 0, x = inf, v = inf; nan at invalid points."""
    least = float(jnp.finfo(x.dtype).tiny)  # arithmetic flushes smaller values to zero
    limit = jnp.where(x == inf, far, jnp.full_like(value, steep))
    limit = jnp.where(x < least, jnp.where(v == 0, origin, zero + jnp.zeros_like(x)), limit)
    known = (x >= 0) & (v > -1) & ~((x == inf) & (v == inf))
    usual = (x >= least) & (x < inf) & (v < inf)
    return jnp.where(usual, value, jnp.where(known, limit, jnp.nan))
