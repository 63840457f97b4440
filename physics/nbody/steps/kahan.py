"""Kahan's compensated sum, by which rounding grows as slowly as it can over many steps.

Kahan (1965), doi:10.1145/363707.363723. A number is a pair: its rounded value, and what rounding
has kept out of it so far. Compilers that reorder sums destroy this arithmetic: never give
`precision.reassociation` to a program that holds it.
"""

from jax import Array


def added(high: Array, low: Array, term: Array) -> tuple[Array, Array]:
    """high + low + term as a rounded sum and what the rounding has left, all [...].

    >>> import jax.numpy as jnp
    >>> high, low = added(jnp.float32(1.0), jnp.float32(0.0), jnp.float32(2.0**-30))
    >>> float(high), float(low) == 2.0**-30
    (1.0, True)
    """
    term = term + low
    total = high + term
    return total, term - (total - high)
