"""Gradients that fade with the time they run back through a simulation."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax


def faded(tree: Any, fade: Array | float) -> Any:
    """The tree itself; what flows back through its real leaves is multiplied by `fade`.

    Derivatives through t frames are products of t Jacobians, and where the motion is chaotic, as
    that of a splash, they grow without bound and tell nothing of the mean slope (Metz, Freeman,
    Schoenholz & Kachman 2021, arXiv:2111.05803). Faded at each frame they look 1 / (1 - fade)
    frames ahead. A biased gradient; exact at fade = 1.

    >>> jax.grad(lambda x: faded(x, 0.25) ** 2)(3.0)
    Array(1.5, dtype=float32, weak_type=True)
    """

    def one(x: Array) -> Array:
        if not jnp.issubdtype(jnp.result_type(x), jnp.floating):
            return x
        still = lax.stop_gradient(x)
        return still + fade * (x - still)

    return jax.tree.map(one, tree)
