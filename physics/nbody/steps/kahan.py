"""Kahan's compensated sum, which minimises the growth of rounding errors over many steps.

Kahan (1965), doi:10.1145/363707.363723. A number is a pair: its rounded value and the accumulated
rounding error. Compilers that reorder sums destroy this arithmetic: never apply
`precision.reassociation` to a program that contains it.
"""

from jax import Array


def add(high: Array, low: Array, term: Array) -> tuple[Array, Array]:
    """Return high + low + term as a rounded sum and its rounding error, each [...].

    >>> import jax.numpy as jnp
    >>> high, low = add(jnp.float32(1.0), jnp.float32(0.0), jnp.float32(2.0**-30))
    >>> float(high), float(low) == 2.0**-30
    (1.0, True)
    """
    term = term + low
    total = high + term
    return total, term - (total - high)
