"""log 0F1(; b; z), the confluent hypergeometric limit function behind von Mises-Fisher models.

    0F1(; b; z) = Gamma(b) I_v(2 sqrt z) / z^(v/2),    v = b - 1        (DLMF 10.39.9)

Where v^2 + 4 z is large the uniform expansion of log I_v is written with every difference of
large terms taken by hand, so that the result keeps its relative precision as z vanishes.
"""

from math import inf, pi

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.numerics import disk
from jaxgpu.numerics.arguments import known_at_least, prepare
from jaxgpu.numerics.branches import size_of
from jaxgpu.numerics.coefficients import uniform
from jaxgpu.numerics.uniform import expansion
from jaxgpu.precision import scope


def log_hyp0f1(b: ArrayLike, z: ArrayLike) -> Array:
    """Logarithm of 0F1(; b; z) for b > 0 and 0 <= z < inf; nan elsewhere.

    Args:
        b: parameter; broadcasts with `z`.
        z: argument.

    Differentiable to any order in both, also at z = 0, where d/dz = 1 / b. Relative error a few u.

    >>> log_hyp0f1(1.5, 1.0)  # log(sinh(2) / 2)
    Array(0.59522..., dtype=float32)
    """
    parameter, argument, dtype = prepare("log_hyp0f1", b, z)
    with scope(argument):
        size = size_of(argument)
        usual = (parameter > 0) & (parameter < inf) & (argument >= 0) & (argument < inf)
        v, z = jnp.where(usual, parameter, 1.0) - 1, jnp.where(usual, argument, 1.0)
        large, short = v >= size.edge, z < 1
        value = steep(
            jnp.where(large & ~short, v, size.edge), 4 * jnp.where(short, 1.0, z), size, 1
        )
        value = jnp.where(
            short, _short(jnp.where(short & large, v, size.edge), jnp.where(short, z, 0.0)), value
        )
        if not known_at_least(b, size.edge + 1):
            inside = v * v + 4 * z < size.edge**2
            tail, _ = disk.series(jnp.where(inside, v, 0.0), jnp.where(inside, z, 0.0), size)
            wide = _gentle(jnp.where(large, 0.0, v), jnp.where(inside, size.edge**2, z), size)
            value = jnp.where(large, value, jnp.where(inside, jnp.log1p(tail), wide))
        return jnp.where(usual, value, jnp.nan).astype(dtype)


def steep(v: Array, x2: Array, size: disk.Size, sign: int) -> Array:
    """log of I_v(x) (2/x)^v Gamma(v + 1), or (sign < 0) of 2 K_v(x) (x/2)^v / Gamma(v).

    For v at least `size.edge`; lnGamma is the expansion itself at x = 0. `x2` is x^2.
    """
    s = jnp.sqrt(v * v + x2)
    rise = x2 / ((s + v) * v)  # s / v - 1
    table, one = uniform(size.uniform).log, jnp.ones_like(v)
    even, odd = expansion(table, (v / s) ** 2, 1 / s)
    even_0, odd_0 = expansion(table, one, 1 / v)
    change = (even - even_0) + sign * (odd - odd_0)
    return sign * v * (rise - jnp.log1p(0.5 * rise)) - 0.5 * jnp.log1p(rise) + change


def _gentle(v: Array, z: Array, size: disk.Size) -> Array:
    """v below `size.edge` and s above it."""
    s = jnp.sqrt(v * v + 4 * z)
    low = v < 0  # Gamma(b) = Gamma(b + 1) / b
    p, g, _ = disk.gamma_parts(jnp.where(low, v + 1, v), size)
    p = jnp.where(low, p / (v + 1), p)
    terms = sum(expansion(uniform(size.uniform).log, (v / s) ** 2, 1 / s))
    return (
        jnp.log(p)
        - jnp.log1p(g)
        + s
        - v * jnp.log(0.5 * (v + s))
        - 0.5 * jnp.log(2 * pi * s)
        + terms
    )


def _short(v: Array, z: Array) -> Array:
    """Large v and z < 1: the power series, where ten terms are more than enough."""
    total = jnp.ones_like(z)
    for k in range(10, 1, -1):
        total = 1 + total * z / (k * (v + k))
    return jnp.log1p(total * z / (v + 1))
