"""A gradient that the particles of a body share."""

import jax.numpy as jnp
from jax import Array, lax


def shared(x: Array, share: Array | float) -> Array:
    """x itself, but each entry's gradient is `share` of the mean over all and the rest its own.

    y = x, dy = (1 - share) dx + share <dx>. Where most particles feel nothing of a goal, such as
    those deep in a glass, the few that do lead all (the attraction of FluidLab, Xian et al. 2023,
    arXiv:2303.02346). A biased gradient: use it to set out, not to arrive.

    >>> import jax
    >>> jax.grad(lambda x: shared(x, 0.5)[0])(jnp.zeros(4))
    Array([0.625, 0.125, 0.125, 0.125], dtype=float32)
    """
    still, middle = lax.stop_gradient(x), jnp.mean(x)
    return still + (1 - share) * (x - still) + share * (middle - lax.stop_gradient(middle))
