"""OpenES and PGPE: gradients of the expected rank from mirrored samples, for Adam
(Kingma & Ba 2015, arXiv:1412.6980, with its rates 0.9 and 0.999).

Salimans, Ho, Chen, Sidor & Sutskever (2017), arXiv:1703.03864: one fixed standard deviation.
Sehnke et al. (2010), doi:10.1016/j.neunet.2009.12.004: a deviation for each variable, which is
learnt too. Both shape the objective by centred ranks in [-1/2, 1/2], as the former does; PGPE is
asked for by `learn_sigma`, the rate of its deviations. O(N D).

Departures: PGPE's paper uses the objective itself, a moving baseline and plain steps; here the
ranks need no baseline, Adam steps, and a deviation changes by no more than a fifth at once.
The distribution is not bounded, and its samples are evaluated inside the box (`bounds`).
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size

from ..problem import Box, Problem
from ..protocol import ask, init, tell
from . import bounds
from .adaptation import above_zero
from .ranking import Best, better, nothing, start, utilities, width


@pytree
class OpenES:
    """What to run: OpenES, or PGPE where `learn_sigma` is above 0."""

    population: int = size(least=4)  # N, even: the candidates are mirrored
    # [] standard deviation, in widths of the box
    sigma: Array | float = number(default=0.05, above=0, unit="widths of the box", one=True)
    # [] step of Adam, in widths of the box
    rate: Array | float = number(default=0.01, above=0, unit="widths of the box", one=True)
    # [] PGPE's rate of the deviations; 0.1 is its paper's
    learn_sigma: Array | float = number(default=0.0, least=0, one=True)

    def __post_init__(self) -> None:
        whole = isinstance(self.population, int)
        if whole and (self.population < 4 or self.population % 2):
            raise ValueError(f"OpenES: population={self.population}; it must be even, at least 4")


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D] free
    sigma: Array  # [D] standard deviations
    first: Array  # [D] Adam's running mean of the gradients, in standard deviations
    second: Array  # [D] and of their squares
    generation: Array  # []
    best: Best
    box: Box
    key: Array  # [] of the candidates at the sides


def pgpe(population: int, sigma: float = 0.1, rate: float = 0.01) -> OpenES:
    """The spec of PGPE."""
    return OpenES(population, sigma, rate, 0.1)


@init.register
def _(spec: OpenES, key: Array, problem: Problem) -> State:
    mean = bounds.free(problem.box, start(spec, key, problem))
    sigma = spec.sigma * width(problem.box)
    zero, best, own = jnp.zeros_like(mean), nothing(problem), bounds.first_key(key)
    return State(mean, sigma, zero, zero, jnp.int32(0), best, problem.box, own)


def _drawing(spec: OpenES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    def draw(key: Array) -> Array:
        shape = spec.population // 2, state.mean.shape[0]
        half = jax.random.normal(key, shape, state.mean.dtype)
        return state.mean[None] + state.sigma[None] * jnp.concatenate([half, -half])

    return bounds.Cloud(state.mean, state.sigma), draw


@ask.register
def _(spec: OpenES, state: State, key: Array) -> Array:
    return bounds.candidates(state.box, state.key, key, *_drawing(spec, state), twins=True)


@tell.register
def _(spec: OpenES, state: State, x: Array, f: Array, violation: Array) -> State:
    n = spec.population
    ranks = 0.5 - jnp.arange(n).astype(x.dtype) / (n - 1)
    weight = utilities(f, violation, ranks)[:, None]
    y = bounds.samples(state.box, state.key, x, *_drawing(spec, state))
    z = (y - state.mean[None]) / state.sigma[None]
    downhill = jnp.sum(weight * z, axis=0) / n
    first = 0.9 * state.first + 0.1 * downhill
    second = 0.999 * state.second + 0.001 * downhill**2
    age = (state.generation + 1).astype(x.dtype)
    step = first / (1 - 0.9**age) / (jnp.sqrt(second / (1 - 0.999**age)) + 1e-8)
    wider = spec.learn_sigma * jnp.sum(weight * (z * z - 1), axis=0) / n
    return State(
        bounds.settled(state.box, state.mean + spec.rate * width(state.box) * step),
        above_zero(state.sigma * (1 + jnp.clip(wider, -0.2, 0.2))),
        first,
        second,
        state.generation + 1,
        better(state.best, x, f, violation),
        state.box,
        bounds.next_key(state.key),
    )
