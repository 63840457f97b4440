"""SNES: natural gradient steps with a diagonal covariance, in O(N D).

Schaul, Glasmachers & Schmidhuber (2011), doi:10.1145/2001576.2001692; Wierstra et al. (2014),
JMLR 15:949, table 1 for the rates.

Departure: candidates outside the box are moved to its nearest points, and learnt from as such.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution.population import inside
from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.evolution.protocol import ask, init, tell
from jaxgpu.evolution.single.adaptation import above_zero
from jaxgpu.evolution.single.ranking import Best, better, nothing, start, utilities, width
from jaxgpu.evolution.single.xnes import natural_weights
from jaxgpu.pytree import pytree, static


@pytree
class SNES:
    """What to run."""

    population: int = static()  # N
    sigma: Array | float = 0.2  # [] first standard deviations, in widths of the box
    rate: Array | float = 1.0  # [] of the mean
    scale: Array | float = 1.0  # [] of the rate of the deviations, times that of the paper

    def __post_init__(self) -> None:
        if self.population < 4:
            raise ValueError(f"SNES: population={self.population}; it must be at least 4")


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D]
    sigma: Array  # [D] standard deviations
    best: Best
    box: Box


@init.register
def _(spec: SNES, key: Array, problem: Problem) -> State:
    mean = start("SNES", key, problem)
    return State(mean, spec.sigma * width(problem.box), nothing(problem), problem.box)


@ask.register
def _(spec: SNES, state: State, key: Array) -> Array:
    z = jax.random.normal(key, (spec.population, state.mean.shape[0]), state.mean.dtype)
    return inside(state.box, state.mean[None] + state.sigma[None] * z)


@tell.register
def _(spec: SNES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    weight = utilities(f, violation, natural_weights(n, x.dtype))[:, None]
    z = (x - state.mean[None]) / state.sigma[None]
    rate = spec.scale * (3 + math.log(d)) / (5 * math.sqrt(d))
    step = spec.rate * state.sigma * jnp.sum(weight * z, axis=0)
    # the weights sum to 0: z^2 - 1 needs no -1
    sigma = above_zero(state.sigma * jnp.exp(rate / 2 * jnp.sum(weight * z * z, axis=0)))
    mean = inside(state.box, (state.mean + step)[None])[0]
    return State(mean, sigma, better(state.best, x, f, violation), state.box)
