"""log I_v(x) and log K_v(x), and ratios of neighbouring orders, to a few ulp for every real order.

The plane is cut once, by s = sqrt(v^2 + |x|^2): outside a quarter disk one uniform expansion
(jaxgpu.numerics.uniform) holds for both functions, inside it a power series or a recurrence
(jaxgpu.numerics.disk). Both sides are a fixed number of operations without data-dependent loops.
Float32 is computed in float32 and float64 in float64; half precisions are computed in float32.

    x = 0: log I = 0 at v = 0, else -inf;  log K = +inf
    x = +inf: log I = +inf, log K = -inf;  v = +-inf: the reverse;  both: nan
    x < 0 or a nan: nan;  subnormal x counts as 0, as XLA flushes it
    v < 0: K is even in v;  I_v is I_|v| at integers, else log I_v, nan where I_v < 0
"""

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.numerics.arguments import known_at_least, prepare
from jaxgpu.numerics.branches import Kind, log_bessel, reflection_weights, size_of
from jaxgpu.precision import scope


def log_iv(v: ArrayLike, x: ArrayLike) -> Array:
    """Logarithm of the modified Bessel function of the first kind, log I_v(x).

    Args:
        v: order, any real; broadcasts with `x`. A Python or NumPy value of at least 24 (10 in
            float32) is known when tracing, and then only the uniform expansion is compiled.
        x: argument, x >= 0.

    Differentiable to any order in `v` and `x`. Error at most 2 ulp of condition in float64 and
    float32 (tests/numerics/test_bessel.py says what that is).

    >>> log_iv(1000.0, 0.5)
    Array(-7298.42..., dtype=float32)
    """
    return _first_kind("log_iv", v, x, scaled=False)


def log_ive(v: ArrayLike, x: ArrayLike) -> Array:
    """log(exp(-x) I_v(x)): `log_iv` without the growth, and without the subtraction.

    >>> log_ive(0.0, 1e30)  # -log(2 pi x) / 2
    Array(-35.4577..., dtype=float32)
    """
    return _first_kind("log_ive", v, x, scaled=True)


def log_kv(v: ArrayLike, x: ArrayLike) -> Array:
    """Logarithm of the modified Bessel function of the second kind, log K_v(x).

    Arguments as in `log_iv`; even in `v`. Differentiable to any order in `v` and `x`. Error at
    most 4 ulp of condition in float64, 3 in float32.

    >>> log_kv(0.5, 2.0)  # log(sqrt(pi / 4)) - 2
    Array(-2.12078..., dtype=float32)
    """
    return _second_kind("log_kv", v, x, scaled=False)


def log_kve(v: ArrayLike, x: ArrayLike) -> Array:
    """log(exp(x) K_v(x)): `log_kv` without the decay, and without the subtraction.

    >>> log_kve(0.5, 1e30)
    Array(-34.3129..., dtype=float32)
    """
    return _second_kind("log_kve", v, x, scaled=True)


def _first_kind(name: str, v: ArrayLike, x: ArrayLike, scaled: bool) -> Array:
    order, argument, dtype = prepare(name, v, x)
    with scope(argument):
        kind = Kind(1, scaled, known_at_least(v, size_of(argument).edge))
        if known_at_least(v, 0.0):
            return log_bessel(kind, order, argument).astype(dtype)
        positive = jnp.where(order < 0, -order, order)
        value = log_bessel(kind, positive, argument)
        mixed = (order < 0) & (order != jnp.round(order)) & (argument > 0)
        mixed = mixed & (positive < jnp.inf) & (argument < jnp.inf)
        # one branch is run, except under a vmap over v
        change = jax.lax.cond(jnp.any(mixed), _reflection, _nothing, mixed, positive, argument)
        return (value + change).astype(dtype)


def _second_kind(name: str, v: ArrayLike, x: ArrayLike, scaled: bool) -> Array:
    order, argument, dtype = prepare(name, v, x)
    with scope(argument):
        kind = Kind(-1, scaled, known_at_least(v, size_of(argument).edge))
        # not |v|, whose second derivative at 0 would be lost
        return log_bessel(kind, jnp.where(order < 0, -order, order), argument).astype(dtype)


def _reflection(mixed: Array, m: Array, x: Array) -> Array:
    """log |I_{-m} / I_m| where `mixed`: I_{-m} = I_m + (2 / pi) sin(pi m) K_m, DLMF 10.27.2."""
    m, x = jnp.where(mixed, m, 1.0), jnp.where(mixed, x, 1.0)
    first, second, lead = reflection_weights(m, x)
    return jnp.where(mixed, lead + jnp.log(first + second), 0.0)


def _nothing(mixed: Array, m: Array, x: Array) -> Array:
    return jnp.zeros_like(x)
