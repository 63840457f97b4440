"""Maps over particles: chunk by chunk on a CPU, on all particles in one batch elsewhere.

On a CPU the data of a chunk must stay in its cache, so chunks are processed one after another. On
an accelerator each iteration of such a loop would be a sequence of small launches. The same
elementwise work over all of [C, P] is a few large launches, for any number of particles and of
scenes in a `vmap`.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax


def map_particles(one: Callable[[Any], Any], particles: Any) -> Any:
    """Apply `one` to each particle, arrays [C, P]; differentiable as `one` is.

    A reverse pass stores only `particles` and computes `one` again. Only the branch of the platform
    that a program is built for becomes part of it.

    Args:
        one: elementwise function, which may be given [P] as well as [C, P].
        particles: pytree of arrays [C, P].

    >>> import jax.numpy as jnp
    >>> particles = {"m": jnp.ones((2, 3)), "v": jnp.full((2, 3), 4.0)}
    >>> map_particles(lambda p: p["m"] * p["v"], particles).shape
    (2, 3)
    """
    one = jax.checkpoint(one)
    return lax.platform_dependent(
        particles, cpu=lambda chunks: lax.map(one, chunks), default=lambda whole: one(whole)
    )
