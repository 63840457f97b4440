"""Inverse powers of the distance of a pair of points, of which one pulls the other.

A point does not pull itself: where there is no distance the powers are 0, and no constant is needed
that a device may not hold.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax


@jax.custom_jvp
def inverse_powers(r2: Array) -> tuple[Array, Array]:
    """1 / r^2 and 1 / r^3, and 0 for both where there is no distance, as are their derivatives."""
    return _powers(jnp.where(r2 > 0, r2, jnp.inf))


@inverse_powers.defjvp
def _inverse_powers_jvp(primals: tuple, tangents: tuple) -> tuple[tuple, tuple]:
    u2, u3 = inverse_powers(*primals)
    change = u2 * tangents[0]
    return (u2, u3), (-u2 * change, -1.5 * u3 * change)


def powers_in_kernel(r2: Array) -> tuple[Array, Array]:
    """1 / r^2 and 1 / r^3, and 0 for both where there is no distance, or in float32 below 1e-12."""
    least = 1e-24 if r2.dtype == jnp.float32 else 0.0  # whose cube leaves float32
    u = jnp.where(r2 > least, lax.rsqrt(r2), jnp.zeros_like(r2))
    return u * u, u * (u * u)


def _powers(r2: Array) -> tuple[Array, Array]:
    def cpu(r2: Array) -> tuple[Array, Array]:
        u2 = 1 / r2
        return u2, u2 * jnp.sqrt(u2)

    def other(r2: Array) -> tuple[Array, Array]:
        u = lax.rsqrt(r2)
        return u * u, u * (u * u)

    return lax.platform_dependent(r2, cpu=cpu, default=other)
