"""log 0F1(; b; z), the confluent hypergeometric limit function, used by von Mises-Fisher models.

    0F1(; b; z) = Gamma(b) I_v(x) (2 / x)^v,    v = b - 1, x = 2 sqrt z        (DLMF 10.39.9)

It is even and analytic in x where log I_v itself is singular. For large x and v, the uniform
expansion of log I_v is rearranged so that all differences of large terms cancel analytically.
"""

from math import inf

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.devices.precision import scope
from jaxgpu.inputs.explanations import explain_errors, keeps_64_bits

from ..arguments import known_min, prepare
from . import disk
from .branches import log_bessel
from .debye import BesselKind, edge, expansion


@explain_errors
@keeps_64_bits
def log_hyp0f1(b: ArrayLike, z: ArrayLike) -> Array:
    """Return the logarithm of 0F1(; b; z) for b > 0 and 0 <= z < inf, nan elsewhere.

    Args:
        b: parameter; broadcasts with `z`.
        z: argument.

    Differentiable to any order in both, also at z = 0, where d/dz = 1 / b. Relative error a few u.

    >>> log_hyp0f1(1.5, 1.0)  # log(sinh(2) / 2)
    Array(0.59522..., dtype=float32)
    """
    parameter, argument, dtype = prepare("log_hyp0f1", b, z, ("b", "z"))
    with scope(argument):
        ends = edge(argument)
        usual = (parameter > 0) & (parameter < inf) & (argument >= 0) & (argument < inf)
        v, z = jnp.where(usual, parameter, 1.0) - 1, jnp.where(usual, argument, 1.0)
        short, large = 4 * z < ends**2, v >= ends
        far = jnp.where(short, ends**2, z)
        value = log_normalized_bessel(
            BesselKind(1, least=known_min(b) - 1), jnp.where(large, v, ends), 4 * far
        )
        if known_min(b) < ends + 1:
            value = jnp.where(large, value, _log_hyp0f1_low_order(jnp.where(large, 0.0, v), far))
        value = jnp.where(
            short, jnp.log1p(disk.hyp0f1_series(v, jnp.where(short, z, 0.0))[0]), value
        )
        return jnp.where(usual, value, jnp.nan).astype(dtype)


def log_normalized_bessel(kind: BesselKind, v: Array, x2: Array) -> Array:
    """Return log of I_v(x) (2/x)^v Gamma(v + 1), or (kind.sign < 0) of 2 K_v(x) (x/2)^v / Gamma(v).

    Valid for v >= edge. log Gamma is the same expansion, evaluated at x = 0. `x2` is x^2.
    """
    s, sign = jnp.sqrt(v * v + x2), kind.sign
    rise = x2 / ((s + v) * v)  # s / v - 1
    change = expansion(kind, (v / s) ** 2, 1 / s) - expansion(kind, jnp.ones_like(v), 1 / v)
    return sign * v * (rise - jnp.log1p(0.5 * rise)) - 0.5 * jnp.log1p(rise) + change


def log_gamma(v: Array) -> Array:
    """Return log Gamma(v + 1) for -1 < v < edge."""
    low = v < 0  # Gamma(v + 1) = Gamma(v + 2) / (v + 1)
    p, g, _ = disk.gamma_parts(jnp.where(low, v + 1, v))
    return jnp.log(jnp.where(low, p / (v + 1), p)) - jnp.log1p(g)


def _log_hyp0f1_low_order(v: Array, z: Array) -> Array:
    """Return log 0F1 for -1 < v < edge and x >= edge, where I_{-v} equals I_v to rounding."""
    x = 2 * jnp.sqrt(z)
    first = log_bessel(BesselKind(1), jnp.where(v < 0, -v, v), x)
    return log_gamma(v) + first - v * disk.log_half(x)
