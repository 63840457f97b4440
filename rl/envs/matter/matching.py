"""Goal of imitation: every particle is where a demonstration had it at that time.

    l(t) = mean over particles of |x - x*(t)|^2,  m^2,

particle by particle, as in FluidLab (Xian et al. 2023, arXiv:2303.02346), where it is called a
chamfer distance. The demonstration is a plan; the positions x*(t) are simulated from the start of
the episode, so that they are reachable from any start. So a reset simulates two episodes, that of
the demonstration and that of zero actions, whose mean loss is l_0. Many copies of such a task
should restart from their own first state (`restart="same"` of `rl.vectorize`).
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size, static
from jaxgpu.physics.continuum import State

from .task import Play


@pytree
class Demonstration:
    """Positions of the particles that count, after every frame."""

    x: Any  # D arrays [T, N] of the demonstration, m
    filled: Array  # [T, N] whether the slot held a particle
    idle: Array  # [] mean loss of zero actions, m^2


@pytree
class MatchGoal:
    """Goal of particles at their positions in a demonstration at the same time.

    >>> goal = MatchGoal(jnp.zeros((2, 2)), frame=0.02)
    >>> goal.demo.shape, goal.tolerance
    ((2, 2), 0.1)
    """

    demo: Any = number()  # [T, A] actions of the demonstration
    frame: Array | float = number(above=0, unit="s")  # [] duration of a frame, s
    tolerance: Array | float = number(
        default=0.1, above=0
    )  # [] fraction of l_0 below which the loss is a success
    bodies: tuple[int, ...] = static(default=(0,))  # bodies of the scene whose particles count
    every: int = size(default=1, least=1)  # stride of the slots that count

    def reference(self, state: State, play: Play) -> Demonstration:
        """Simulate the demonstration and zero actions; return the positions to match."""
        demo = jnp.asarray(self.demo, state.t.dtype)
        runs = jax.lax.map(
            lambda actions: play(actions, self._counted_positions),
            jnp.stack([demo, jnp.zeros_like(demo)]),
        )
        (x, filled), (idle, _) = (jax.tree.map(lambda a, i=i: a[i], runs) for i in (0, 1))
        return Demonstration(x, filled, jnp.mean(_filled_mean(_square_distance(x, idle), filled)))

    def loss(self, state: State, reference: Demonstration) -> Array:
        """Return the mean of |x - x*(t)|^2, m^2; at the start relative to the first frame."""
        frames = reference.filled.shape[0]
        i = jnp.clip(jnp.int32(jnp.round(state.t / self.frame)) - 1, 0, frames - 1)
        x, filled = self._counted_positions(state)
        shown = tuple(a[i] for a in reference.x)
        return _filled_mean(_square_distance(x, shown), filled & reference.filled[i])

    def baseline(self, state: State, reference: Demonstration) -> Array:
        """Return the mean over the frames of the loss of zero actions, m^2."""
        return reference.idle

    def success(self, state: State, reference: Demonstration) -> Array:
        """Return whether the loss is below a fraction `tolerance` of the loss of zero actions."""
        return self.loss(state, reference) < self.tolerance * reference.idle

    def _counted_positions(self, state: State) -> tuple[tuple[Array, ...], Array]:
        """Return positions D x [N] of the slots that count, and the mask [N] of filled slots."""
        counted = [state.bodies[i] for i in self.bodies]
        concatenate = lambda arrays: jnp.concatenate([a.ravel() for a in arrays])[:: self.every]
        x = tuple(concatenate(a) for a in zip(*(b.x.T for b in counted)))
        return x, concatenate([b.m for b in counted]) > 0


def _square_distance(x: tuple[Array, ...], y: tuple[Array, ...]) -> Array:
    """Return |x - y|^2 of positions D x [..., N]."""
    return sum(((a - b) ** 2 for a, b in zip(x, y)), jnp.zeros_like(x[0]))


def _filled_mean(quantity: Array, filled: Array) -> Array:
    """Return the mean over the filled slots of the last axis; zero if none is filled."""
    count = jnp.sum(filled, -1).astype(quantity.dtype)
    return jnp.sum(jnp.where(filled, quantity, 0), -1) / jnp.maximum(count, 1)
