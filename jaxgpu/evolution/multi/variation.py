"""Crossover and mutation of real vectors in a box.

Simulated binary crossover: Deb & Agrawal (1995), unbounded and clipped to the bounds, or in the
bounded form of Deb & Beyer (1999), as in the authors' NSGA-II program. Only the former puts
children on a bound, where the edges of many fronts are. Polynomial mutation: Deb & Goyal (1996),
bounded. Each random number is drawn once: one 32-bit word gives a spread factor and two coin flips.
A word below the mutation rate, divided by the rate, is the uniform number that the mutation needs.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, static

from ..problem import Box


@pytree
class SBX:
    """Simulated binary crossover: children are spread about the parents by the parents' distance.

    Each variable of a crossed pair is crossed with probability 1/2. Away from bounds, the two
    children keep the mean of the parents. If `bounded`, the density of the spread factor is
    truncated at the bounds, so children only come near them; otherwise children outside are clipped
    to the bounds.
    """

    eta: Array | float = number(default=15.0, least=0, one=True)  # [] larger is closer to parents
    prob: Array | float = number(
        default=0.9, least=0, most=1, one=True
    )  # [] probability that a pair is crossed
    # whether the spread keeps children within the bounds; otherwise they are clipped
    bounded: bool = static(default=True)

    def __call__(self, key: Array, a: Array, b: Array, box: Box) -> tuple[Array, Array]:
        """Return two children of each pair of parents. [P, D], [P, D] -> [P, D], [P, D]."""
        k_pair, k_bits = jax.random.split(key)
        bits = jax.random.bits(k_bits, a.shape, jnp.uint32)
        u = ((bits >> 9).astype(a.dtype) + 0.5) * 2.0**-23
        paired = jax.random.bernoulli(k_pair, self.prob, (a.shape[0], 1))
        low, high = jnp.minimum(a, b), jnp.maximum(a, b)
        gap = high - low
        crossed = paired & ((bits & 1) == 1) & (gap > 0)
        gap = jnp.where(crossed, gap, 1)
        mean = 0.5 * (low + high)
        c = mean - 0.5 * self._spread_factor(u, jnp.maximum(low - box.lower[None], 0) / gap) * gap
        d = mean + 0.5 * self._spread_factor(u, jnp.maximum(box.upper[None] - high, 0) / gap) * gap
        swap = (bits & 2) == 2
        c, d = jnp.where(swap, d, c), jnp.where(swap, c, d)
        c, d = (jnp.clip(x, box.lower[None], box.upper[None]) for x in (c, d))
        return jnp.where(crossed, c, a), jnp.where(crossed, d, b)

    def _spread_factor(self, u: Array, room: Array) -> Array:
        """Return the distance from the mean in half gaps; `room` outside the pair is in gaps."""
        alpha = 2 - _power(1 + 2 * room, -(self.eta + 1)) if self.bounded else 2
        v = u * alpha
        return _power(jnp.where(v <= 1, v, 1 / (2 - v)), 1 / (self.eta + 1))


@pytree
class PolynomialMutation:
    """Polynomial mutation: some variables move by a random fraction of the box."""

    eta: Array | float = number(default=20.0, least=0, one=True)  # [] larger is closer to parents
    # [] probability that a variable is moved; None: 1 / D, one variable per child on average
    prob: Array | float | None = number(default=None, least=0, most=1, one=True, none=True)

    def __call__(self, key: Array, x: Array, box: Box) -> Array:
        """Return the mutated candidates. [N, D] -> [N, D]."""
        prob = 1 / x.shape[1] if self.prob is None else jnp.minimum(self.prob, 1)
        draw = jax.random.bits(key, x.shape, jnp.uint32).astype(x.dtype) * 2.0**-32
        mutated = draw < prob
        u = draw / prob
        width = (box.upper - box.lower)[None]
        at = (x - box.lower[None]) / jnp.where(width > 0, width, 1)
        down = u < 0.5
        room = _power(jnp.where(down, 1 - at, at), self.eta + 1)
        v = jnp.where(down, 2 * u, 2 - 2 * u)
        # |shift| in the unit box; v + (1 - v) room is in [0, 1]
        shift = 1 - _power(jnp.clip(v + (1 - v) * room, 0, 1), 1 / (self.eta + 1))
        moved = x + jnp.where(down, -shift, shift) * width
        return jnp.where(mutated, jnp.clip(moved, box.lower[None], box.upper[None]), x)


def children(
    key: Array, crossover: SBX, mutation: PolynomialMutation, a: Array, b: Array, box: Box
) -> Array:
    """Return two children per pair of parents, crossed and mutated. [P, D], [P, D] -> [2 P, D]."""
    k_cross, k_mutate = jax.random.split(key)
    # fusing the gather of the parents would prevent vectorised loops
    a, b = lax.optimization_barrier((a, b))
    return mutation(k_mutate, jnp.concatenate(crossover(k_cross, a, b, box)), box)


def _power(x: Array, exponent: Array | float) -> Array:
    """Return x^exponent for x >= 0; on a CPU XLA vectorises log and exp, but not power."""
    return jnp.exp(exponent * jnp.log(x))
