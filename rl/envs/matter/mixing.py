"""Mixing: stir milk until it is distributed over the whole cup.

After FluidLab's task of that name (Xian et al. 2023, arXiv:2303.02346), whose loss is minus the sum
of |x - x'|_1 over pairs of a tenth of the milk's particles. Here all pairs count, and the loss is
the deficit relative to an even mixture,

    l = m(all liquid at the start) - m(milk),  m = mean over pairs of |x - x'|_1,  m.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.continuum import Particles, State

from ...environment import register
from . import cup
from .task import MatterTask, Play

PATCH = 0.013  # m, radius of the milk at the start
START = (-0.024, 0.0)  # m from the axis
# Back and forth through the milk, twice, and a rest.
STROKES = cup.stroke_actions(
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
class SpreadGoal:
    """Goal of milk that is spread as far as in an even mixture.

    >>> SpreadGoal().tolerance
    0.3
    """

    tolerance: Array | float = number(
        default=0.3, above=0
    )  # [] fraction of l_0 below which the loss is a success

    def reference(self, state: State, play: Play) -> Array:
        """Return the mean pair distances of all liquid, and of the milk."""
        return jnp.stack([mean_pair_distance(state.bodies), mean_pair_distance(state.bodies[:1])])

    def loss(self, state: State, reference: Array) -> Array:
        """Return the deficit of the milk's mean pair distance, m, at least zero."""
        return jnp.maximum(reference[0] - mean_pair_distance(state.bodies[:1]), 0)

    def baseline(self, state: State, reference: Array) -> Array:
        """Return the loss at the start, m."""
        return reference[0] - reference[1]

    def success(self, state: State, reference: Array) -> Array:
        """Return whether the loss is below the fraction `tolerance` of that at the start."""
        return self.loss(state, reference) < self.tolerance * self.baseline(state, reference)


def mean_pair_distance(bodies: tuple[Particles, ...]) -> Array:
    """Return the mean of |x - x'|_1 over pairs of particles, m, in O(N log N)."""
    filled = jnp.concatenate([b.m.ravel() > 0 for b in bodies])
    n, rank = jnp.sum(filled, dtype=jnp.int32), jnp.arange(filled.size, dtype=jnp.int32)
    total = jnp.zeros((), bodies[0].m.dtype)
    for axis in zip(*(b.x.T for b in bodies)):
        x = jnp.concatenate([a.ravel() for a in axis])
        x = jnp.sort(jnp.where(filled, x, jnp.inf))  # empty slots last
        # In sorted order, entry k is the larger one in k pairs and the smaller one in n - 1 - k.
        weight = (2 * rank - n + 1).astype(x.dtype)
        total = total + jnp.sum(jnp.where(rank < n, weight * jnp.where(rank < n, x, 0), 0))
    pairs = n.astype(total.dtype)
    return total / (pairs * (pairs - 1) / 2)


@register("matter/mixing")
def make_mixing(size: str = "small", **parameters: Any) -> MatterTask:
    """Make the task of spreading milk in 2 s; `size` is "small" (2-D) or "full"."""
    scene, shared = cup.make_scene(size, START, lambda x, y: x * x + y * y < PATCH**2)
    return MatterTask(
        scene, SpreadGoal(), initial_plan=STROKES, max_steps=len(STROKES), **shared, **parameters
    )
