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
from ..protocol import ask, init, tell
from . import bounds
from .adaptation import above_zero
from .ranking import Best, better, nothing, start, utilities, width
from .xnes import natural_weights


@pytree
class SNES:
    """What to run."""

    population: int = size(least=4)  # N
    # [] first standard deviations, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    rate: Array | float = number(default=1.0, above=0, one=True)  # [] of the mean
    # [] of the rate of the deviations, times that of the paper
    scale: Array | float = number(default=1.0, least=0, one=True)

    def __post_init__(self) -> None:
        if isinstance(self.population, int) and self.population < 4:
            raise ValueError(f"SNES: population={self.population}; it must be at least 4")


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D] free
    sigma: Array  # [D] standard deviations
    best: Best
    box: Box
    key: Array  # [] of the candidates at the sides


@init.register
def _(spec: SNES, key: Array, problem: Problem) -> State:
    box = problem.box
    mean = bounds.free(box, start(spec, key, problem))
    return State(mean, spec.sigma * width(box), nothing(problem), box, bounds.first_key(key))


def _drawing(spec: SNES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    def draw(key: Array) -> Array:
        z = jax.random.normal(key, (spec.population, state.mean.shape[0]), state.mean.dtype)
        return state.mean[None] + state.sigma[None] * z

    return bounds.Cloud(state.mean, state.sigma), draw


@ask.register
def _(spec: SNES, state: State, key: Array) -> Array:
    return bounds.candidates(state.box, state.key, key, *_drawing(spec, state))


@tell.register
def _(spec: SNES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    weight = utilities(f, violation, natural_weights(n, x.dtype))[:, None]
    y = bounds.samples(state.box, state.key, x, *_drawing(spec, state))
    z = (y - state.mean[None]) / state.sigma[None]
    rate = spec.scale * (3 + math.log(d)) / (5 * math.sqrt(d))
    step = spec.rate * state.sigma * jnp.sum(weight * z, axis=0)
    # the weights sum to 0: z^2 - 1 needs no -1
    sigma = above_zero(state.sigma * jnp.exp(rate / 2 * jnp.sum(weight * z * z, axis=0)))
    best, own = better(state.best, x, f, violation), bounds.next_key(state.key)
    mean = bounds.settled(state.box, state.mean + step)
    return State(mean, sigma, best, state.box, own)
