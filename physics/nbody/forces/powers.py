"""Inverse powers of the distance between two points, for their gravity.

The powers are 0 at zero distance, so that a point does not pull itself. No tiny constant is needed,
which some devices could not represent.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax


@jax.custom_jvp
def inverse_powers(r2: Array) -> tuple[Array, Array]:
    """Return 1 / r^2 and 1 / r^3; values and derivatives are 0 where the distance is 0."""
    return _powers(jnp.where(r2 > 0, r2, jnp.inf))


@inverse_powers.defjvp
def _inverse_powers_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    u2, u3 = inverse_powers(*primals)
    change = u2 * tangents[0]
    return (u2, u3), (-u2 * change, -1.5 * u3 * change)


def powers_in_kernel(r2: Array) -> tuple[Array, Array]:
    """Return 1 / r^2 and 1 / r^3, but 0 at zero distance (in float32: below 1e-12)."""
    least = 1e-24 if r2.dtype == jnp.float32 else 0.0  # its inverse cube overflows float32
    u = jnp.where(r2 > least, lax.rsqrt(r2), jnp.zeros_like(r2))
    return u * u, u * (u * u)


def _powers(r2: Array) -> tuple[Array, Array]:
    def sqrt_powers(r2: Array) -> tuple[Array, Array]:
        u2 = 1 / r2
        return u2, u2 * jnp.sqrt(u2)

    def rsqrt_powers(r2: Array) -> tuple[Array, Array]:
        u = lax.rsqrt(r2)
        return u * u, u * (u * u)

    return lax.platform_dependent(r2, cpu=sqrt_powers, default=rsqrt_powers)
