"""OpenES and PGPE: gradients of the expected rank from mirrored samples, for Adam
(Kingma & Ba 2015, arXiv:1412.6980, with its rates 0.9 and 0.999).

Salimans, Ho, Chen, Sidor & Sutskever (2017), arXiv:1703.03864: one fixed standard deviation.
Sehnke et al. (2010), doi:10.1016/j.neunet.2009.12.004: a deviation for each variable, which is
learnt too. Both shape the objective by centred ranks in [-1/2, 1/2], as the former does; PGPE is
asked for by `learn_sigma`, the rate of its deviations. O(N D).

Departures: PGPE's paper uses the objective itself, a moving baseline and plain steps; here the
ranks need no baseline, Adam steps, and a deviation changes by no more than a fifth at once.
Candidates outside the box are moved to its nearest points, and learnt from as such.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.evolution.population import inside
from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.evolution.protocol import ask, init, tell
from jaxgpu.evolution.single.adaptation import above_zero
from jaxgpu.evolution.single.ranking import Best, better, nothing, start, utilities, width
from jaxgpu.pytree import pytree, static


@pytree
class OpenES:
    """What to run: OpenES, or PGPE where `learn_sigma` is above 0."""

    population: int = static()  # N, even: the candidates are mirrored
    sigma: Array | float = 0.05  # [] standard deviation, in widths of the box
    rate: Array | float = 0.01  # [] step of Adam, in widths of the box
    learn_sigma: Array | float = 0.0  # [] PGPE's rate of the deviations; 0.1 is its paper's

    def __post_init__(self) -> None:
        if self.population < 4 or self.population % 2:
            raise ValueError(f"OpenES: population={self.population}; it must be even, at least 4")


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D]
    sigma: Array  # [D] standard deviations
    first: Array  # [D] Adam's running mean of the gradients, in standard deviations
    second: Array  # [D] and of their squares
    generation: Array  # []
    best: Best
    box: Box


def pgpe(population: int, sigma: float = 0.1, rate: float = 0.01) -> OpenES:
    """The spec of PGPE."""
    return OpenES(population, sigma, rate, 0.1)


@init.register
def _(spec: OpenES, key: Array, problem: Problem) -> State:
    mean = start("OpenES", key, problem)
    sigma = spec.sigma * width(problem.box)
    zero, best = jnp.zeros_like(mean), nothing(problem)
    return State(mean, sigma, zero, zero, jnp.int32(0), best, problem.box)


@ask.register
def _(spec: OpenES, state: State, key: Array) -> Array:
    half = jax.random.normal(key, (spec.population // 2, state.mean.shape[0]), state.mean.dtype)
    step = state.sigma[None] * jnp.concatenate([half, -half])
    return inside(state.box, state.mean[None] + step)


@tell.register
def _(spec: OpenES, state: State, x: Array, f: Array, violation: Array) -> State:
    n = spec.population
    ranks = 0.5 - jnp.arange(n).astype(x.dtype) / (n - 1)
    weight = utilities(f, violation, ranks)[:, None]
    z = (x - state.mean[None]) / state.sigma[None]
    downhill = jnp.sum(weight * z, axis=0) / n
    first = 0.9 * state.first + 0.1 * downhill
    second = 0.999 * state.second + 0.001 * downhill**2
    age = (state.generation + 1).astype(x.dtype)
    step = first / (1 - 0.9**age) / (jnp.sqrt(second / (1 - 0.999**age)) + 1e-8)
    mean = state.mean + spec.rate * width(state.box) * step
    wider = spec.learn_sigma * jnp.sum(weight * (z * z - 1), axis=0) / n
    return State(
        inside(state.box, mean[None])[0],
        above_zero(state.sigma * (1 + jnp.clip(wider, -0.2, 0.2))),
        first,
        second,
        state.generation + 1,
        better(state.best, x, f, violation),
        state.box,
    )
