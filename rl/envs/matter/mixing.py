"""Mixing: stir milk until it is spread over the whole cup.

After FluidLab's task of the name (Xian et al. 2023, arXiv:2303.02346), whose loss is minus the sum
of |x - x'|_1 over pairs of a tenth of the milk's particles. Here all pairs count, and the loss is
what is missing to an even mixture,

    l = m(all liquid at the start) - m(milk),  m = mean over pairs of |x - x'|_1,  m.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.continuum import Particles, State

from ...environment import register
from . import cup
from .task import Matter, Play

PATCH = 0.013  # m, radius of the milk at the start
START = (-0.024, 0.0)  # m from the axis
# there and back through the milk, twice, and a rest
STROKES = cup.strokes(
    (1, 0, 8),
    (0, -0.6, 4),
    (-1, 0, 8),
    (0, 1, 5),
    (1, 0, 8),
    (0, -1, 5),
    (-1, 0, 8),
    (0, 0, 4),
)


@pytree
class Spread:
    """Milk as far apart as if it were mixed evenly.

    >>> Spread().tolerance
    0.3
    """

    tolerance: Array | float = number(
        default=0.3, above=0
    )  # [] of l_0: a loss below it is a success

    def reference(self, state: State, play: Play) -> Array:
        """Mean distance of pairs of all liquid, and that of the milk."""
        return jnp.stack([mean_pair_distance(state.bodies), mean_pair_distance(state.bodies[:1])])

    def loss(self, state: State, reference: Array) -> Array:
        """What the milk's mean distance of pairs is short of, m; not below zero."""
        return jnp.maximum(reference[0] - mean_pair_distance(state.bodies[:1]), 0)

    def baseline(self, state: State, reference: Array) -> Array:
        """The loss at the start, m."""
        return reference[0] - reference[1]

    def success(self, state: State, reference: Array) -> Array:
        """The loss is below a share `tolerance` of that at the start."""
        return self.loss(state, reference) < self.tolerance * self.baseline(state, reference)


def mean_pair_distance(bodies: tuple[Particles, ...]) -> Array:
    """Mean of |x - x'|_1 over pairs of particles, m. O(N log N)."""
    filled = jnp.concatenate([b.m.ravel() > 0 for b in bodies])
    n, rank = jnp.sum(filled, dtype=jnp.int32), jnp.arange(filled.size, dtype=jnp.int32)
    total = jnp.zeros((), bodies[0].m.dtype)
    for axis in zip(*(b.x.T for b in bodies)):
        x = jnp.concatenate([a.ravel() for a in axis])
        x = jnp.sort(jnp.where(filled, x, jnp.inf))  # empty slots last
        # in order, entry k is the larger one of k pairs and the smaller of n - 1 - k
        weight = (2 * rank - n + 1).astype(x.dtype)
        total = total + jnp.sum(jnp.where(rank < n, weight * jnp.where(rank < n, x, 0), 0))
    pairs = n.astype(total.dtype)
    return total / (pairs * (pairs - 1) / 2)


@register("matter/mixing")
def make_mixing(size: str = "small", **parameters: Any) -> Matter:
    """Spread milk in 2 s; `size` is "small" (in the plane) or "full"."""
    scene, shared = cup.make_scene(size, START, lambda x, y: x * x + y * y < PATCH**2)
    return Matter(
        scene, Spread(), initial_plan=STROKES, max_steps=len(STROKES), **shared, **parameters
    )
