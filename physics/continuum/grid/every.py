"""Work on every particle alone: in chunks on a CPU, on all particles at once elsewhere.

A CPU wants what a chunk needs to stay in its cache, so it takes one chunk after another. On an
accelerator each turn of such a loop would be a row of small launches, one after the other; the
same elementwise work over the whole of [C, P] is a few large ones, however many particles and
however many scenes of a `vmap` there are.
"""

from collections.abc import Callable
from typing import Any

import jax
from jax import lax


def every(one: Callable[[Any], Any], particles: Any) -> Any:
    """What `one` makes of each particle, arrays [C, P]; differentiable as `one` is.

    A reverse pass keeps `particles` alone and computes `one` again. Only the branch of the
    platform that a program is built for becomes part of it.

    Args:
        one: acts on every element alone, so that it may be given [P] as well as [C, P].
        particles: pytree of arrays [C, P].

    >>> import jax.numpy as jnp
    >>> every(lambda p: p["m"] * p["v"], {"m": jnp.ones((2, 3)), "v": jnp.full((2, 3), 4.0)}).shape
    (2, 3)
    """
    one = jax.checkpoint(one)
    return lax.platform_dependent(
        particles, cpu=lambda chunks: lax.map(one, chunks), default=lambda whole: one(whole)
    )
