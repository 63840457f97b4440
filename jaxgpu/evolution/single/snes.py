"""SNES: natural gradient steps with a diagonal covariance, in O(N D).

Schaul, Glasmachers & Schmidhuber (2011), doi:10.1145/2001576.2001692; Wierstra et al. (2014),
JMLR 15:949, table 1 for the rates.

Departure: the distribution is not bounded, and its samples are evaluated inside the box, as
`bounds` says.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size

from ..problem import Box, Problem
from ..protocol import Algorithm, check_pop_size, told
from . import bounds
from .adaptation import above_zero
from .ranking import Best, about_middle, best_of, checked, unevaluated, utilities, width
from .xnes import natural_weights


@pytree
class SNES(Algorithm["State"]):
    """What to run."""

    pop_size: int = size(least=4)  # N
    # [] first standard deviations, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    rate: Array | float = number(default=1.0, above=0, one=True)  # [] of the mean
    # [] of the rate of the deviations, times that of the paper
    scale: Array | float = number(default=1.0, least=0, one=True)

    def __post_init__(self) -> None:
        check_pop_size("SNES", self.pop_size)

    @property
    def batch_size(self) -> int:
        """N."""
        return self.pop_size

    def init(self, key: Array, problem: Problem) -> "State":
        """The first mean, uniform in the inner box."""
        problem = checked(self, key, problem)
        box = problem.box
        return State(
            mean=bounds.free(box, about_middle(key, box)),
            sigma=self.sigma * width(box),
            best=unevaluated(problem),
            box=box,
            generation=jnp.int32(0),
        )

    def ask(self, state: "State", key: Array) -> Array:
        """N samples of the distribution, inside the box."""
        own = bounds.own_key(state.mean, state.generation)
        return bounds.candidates(state.box, own, key, *_drawing(self, state))

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """A step of the mean and the deviations along the natural gradient."""
        x, f, violation = told(self, state, x, f, violation)
        own = bounds.own_key(state.mean, state.generation)
        n, d = x.shape
        weight = utilities(f, violation, natural_weights(n, x.dtype))[:, None]
        y = bounds.samples(state.box, own, x, *_drawing(self, state))
        z = (y - state.mean[None]) / state.sigma[None]
        rate = self.scale * (3 + math.log(d)) / (5 * math.sqrt(d))
        step = self.rate * state.sigma * jnp.sum(weight * z, axis=0)
        # the weights sum to 0: z^2 - 1 needs no -1
        sigma = above_zero(state.sigma * jnp.exp(rate / 2 * jnp.sum(weight * z * z, axis=0)))
        return State(
            mean=bounds.settled(state.box, state.mean + step),
            sigma=sigma,
            best=best_of(state.best, x, f, violation),
            box=state.box,
            generation=state.generation + 1,
        )


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D] free
    sigma: Array  # [D] standard deviations
    best: Best
    box: Box
    generation: Array  # []


def _drawing(spec: SNES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    def draw(key: Array) -> Array:
        z = jax.random.normal(key, (spec.pop_size, state.mean.shape[0]), state.mean.dtype)
        return state.mean[None] + state.sigma[None] * z

    return bounds.Cloud(state.mean, state.sigma), draw
