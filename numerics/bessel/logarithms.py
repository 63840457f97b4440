"""log I_v(x) and log K_v(x) to a few ulp for every real order and argument.

The (v, x) plane has two regions, separated by s = sqrt(v^2 + x^2). In the outer region one uniform
expansion (`debye`) is valid for both functions. The inner quarter disk uses a power series or a
recurrence (`disk`). Both take a fixed number of operations without data-dependent loops.
Float32 is computed in float32 and float64 in float64; half precisions are computed in float32.

    x = 0: log I = 0 at v = 0, else -inf;  log K = +inf
    x = +inf: log I = +inf, log K = -inf;  v = inf: the reverse;  both: nan
    x < 0 or a nan: nan;  subnormal x counts as 0, as XLA flushes it
    v < 0: K is even in v;  I_v is I_|v| at integers, else log I_v, nan where I_v < 0
"""

from math import pi

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from jaxgpu.devices.precision import scope
from jaxgpu.inputs.explanations import explain_errors, keeps_64_bits

from ..arguments import known_min, prepare
from .branches import log_bessel
from .debye import BesselKind


@explain_errors
@keeps_64_bits
def log_iv(v: ArrayLike, x: ArrayLike) -> Array:
    """Return the logarithm of the modified Bessel function of the first kind, log I_v(x).

    Args:
        v: order, any real; broadcasts with `x`. The minimum of a Python or NumPy value is known at
            trace time: if it is at least 24 (10 in float32), only the terms it needs are compiled.
        x: argument, x >= 0.

    Differentiable to any order in `v` and `x`. Error at most 2 ulp of condition in float64 and
    float32 (docs/bessel.md defines it).

    >>> log_iv(1000.0, 0.5)
    Array(-7298.42..., dtype=float32)
    """
    return _broadcast_log_bessel("log_iv", BesselKind(1, scaled=False), v, x)


@explain_errors
@keeps_64_bits
def log_ive(v: ArrayLike, x: ArrayLike) -> Array:
    """Return log(exp(-x) I_v(x)), i.e. `log_iv` minus x without cancellation.

    >>> log_ive(0.0, 1e30)  # -log(2 pi x) / 2
    Array(-35.4577..., dtype=float32)
    """
    return _broadcast_log_bessel("log_ive", BesselKind(1, scaled=True), v, x)


@explain_errors
@keeps_64_bits
def log_kv(v: ArrayLike, x: ArrayLike) -> Array:
    """Return the logarithm of the modified Bessel function of the second kind, log K_v(x).

    Arguments as in `log_iv`; even in `v`. Differentiable to any order in `v` and `x`. Error at
    most 4 ulp of condition in float64, 3 in float32.

    >>> log_kv(0.5, 2.0)  # log(sqrt(pi / 4)) - 2
    Array(-2.12078..., dtype=float32)
    """
    return _broadcast_log_bessel("log_kv", BesselKind(-1, scaled=False), v, x)


@explain_errors
@keeps_64_bits
def log_kve(v: ArrayLike, x: ArrayLike) -> Array:
    """Return log(exp(x) K_v(x)), i.e. `log_kv` plus x without cancellation.

    >>> log_kve(0.5, 1e30)
    Array(-34.3129..., dtype=float32)
    """
    return _broadcast_log_bessel("log_kve", BesselKind(-1, scaled=True), v, x)


def _broadcast_log_bessel(name: str, kind: BesselKind, v: ArrayLike, x: ArrayLike) -> Array:
    order, x, dtype = prepare(name, v, x)
    with scope(x):
        m = jnp.where(order < 0, -order, order)  # abs(v) would lose the second derivative at 0
        value = log_bessel(kind._replace(least=known_min(v)), m, x)
        if kind.sign > 0 and known_min(v) < 0:
            mixed = (order < 0) & (order != jnp.round(order))

            def reflect_negative_orders(value: Array) -> Array:
                at = jnp.where(mixed, m, 1.0), jnp.where(mixed, x, 1.0)
                second = log_bessel(BesselKind(-1), *at) - (at[1] if kind.scaled else 0.0)
                first, second, lead = reflection(at[0], value, second)
                return jnp.where(mixed, lead + jnp.log(first + second), value)

            # only one branch runs, except under a vmap over v
            value = jax.lax.cond(
                jnp.any(mixed), reflect_negative_orders, lambda value: value, value
            )
        return value.astype(dtype)


def reflection(m: Array, log_first: Array, log_second: Array) -> tuple[Array, Array, Array]:
    """Return (a, b, c) with I_m = a exp(c) and (2 / pi) sin(pi m) K_m = b exp(c).

    Both functions are given by their logarithms. Their sum is I_{-m}, DLMF 10.27.2.
    """
    n = jnp.round(m)
    turn = (2 / pi) * jnp.sin(pi * (m - n)) * (1 - 2 * jnp.mod(n, 2))
    log_second = jnp.where(turn == 0, -jnp.inf, log_second)
    top = jnp.finfo(m.dtype).max
    lead = jnp.clip(jnp.maximum(log_first, log_second), -top, top)
    return jnp.exp(log_first - lead), turn * jnp.exp(log_second - lead), lead
