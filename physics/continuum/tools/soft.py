"""Contact that sets in smoothly ahead of where it is hard.

At a distance d further out a node's velocity comes to the one that hard contact would give it at
the rate k,

    k(d) = rate (e - 1) / (exp(d / length) - 1),   v <- v + (1 - exp(-k dt)) (v_hard - v),

without bound at d = 0, so that all derivatives are continuous there, and `rate` at d = `length`.
The idea is that of FluidLab (Xian et al. 2023, arXiv:2303.02346), which mixes exp(-d / length) of
v_hard into v at every step whatever its length; here the outcome does not depend on dt.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree

NEAREST = 1e-6  # of `length`: nearer nodes are as near; keeps 1 / d^2 of a reverse pass finite


@pytree
class Soft:
    """How far ahead, and how firmly, a tool is felt; both above zero, or `prepare` refuses them.

    After Xian et al. (2023), arXiv:2303.02346; the equation is the module's.
    """

    length: Array | float = number(above=0, unit="m", one=True)  # []
    # a length ahead of hard contact
    rate: Array | float = number(default=100.0, above=0, unit="1/s", one=True)  # []

    def share(self, d: Array, dt: Array | float) -> Array:
        """What a step of dt takes of the way to hard contact, d metres ahead of it; 0 to 1.

        d: [...] m, negative within. dt: [] s.

        >>> share = Soft(0.01, rate=100.0).share(jnp.array([-1.0, 0.01, 1.0]), 0.01)
        >>> [round(float(a), 4) for a in share]  # 1 - 1 / e at one length
        [1.0, 0.6321, 0.0]
        """
        out = d > 0
        x = jnp.maximum(jnp.where(out, d / self.length, 1), NEAREST)
        firm = (np.e - 1) * self.rate * dt
        return jnp.where(out, -jnp.expm1(firm * jnp.exp(-x) / jnp.expm1(-x)), 1)
