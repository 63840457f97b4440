"""Base class of strategies that sample a distribution with an unconstrained mean.

The module of a strategy has only its mathematics: the first distribution, how it is sampled, and
how it learns from ranks. The mapping into the box and back, and the best candidate, are here.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from ..problem import Box, Problem
from ..protocol import PopulationAlgorithm, check_pop_size, check_tell
from . import bounds
from .ranking import Best, check_single, init_best, sample_center, update_best


@pytree
class StrategyState:
    """State of a strategy; subclasses add the other parameters of the distribution."""

    mean: Array  # [D] unconstrained: the point of the box is `bounds.to_box(box, mean)`
    best: Best
    box: Box
    generation: Array  # [] number of generations so far


@pytree
class Strategy[S: StrategyState](PopulationAlgorithm[S]):
    """Base class with N samples of a distribution per generation, evaluated inside the box."""

    pop_size: int = size(least=4)  # N
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)

    mirrored = False  # whether the second half of the samples mirrors the first about the mean

    def __post_init__(self) -> None:
        check_pop_size(type(self).__name__, self.pop_size, even=self.mirrored)

    def init(self, key: Array, problem: Problem) -> S:
        problem = check_single(self, key, problem)
        box = problem.box
        mean = bounds.from_box(box, sample_center(key, box))
        return self.begin(mean, box, best=init_best(problem), generation=jnp.int32(0))

    def ask(self, state: S, key: Array) -> Array:
        own = bounds.state_key(state.mean, state.generation)
        cloud, draw = self.sampler(state)
        return bounds.candidates(state.box, own, key, cloud, draw, twins=self.mirrored)

    def tell(self, state: S, x: Array, f: Array, violation: Array | None = None) -> S:
        x, f, violation = check_tell(self, state, x, f, violation)
        own = bounds.state_key(state.mean, state.generation)
        y = bounds.samples(state.box, own, x, *self.sampler(state))
        after = self.learn(state, y, f, violation)
        best = update_best(state.best, x, f, violation)
        return replace(after, best=best, generation=state.generation + 1)

    @abstractmethod
    def begin(self, mean: Array, box: Box, **placed: Any) -> S:
        """Return the first state from mean [D] and `placed`, other fields of `StrategyState`."""

    @abstractmethod
    def sampler(self, state: S) -> tuple[bounds.SearchDistribution, bounds.Sampler]:
        """Return the search distribution's mean and scale, and the function that samples it."""

    @abstractmethod
    def learn(self, state: S, y: Array, f: Array, violation: Array) -> S:
        """Return the state with the distribution updated by the values of the samples y [N, D]."""


def normal_sampler(
    mean: Array, deviation: Array, count: int
) -> tuple[bounds.SearchDistribution, bounds.Sampler]:
    """Return `sampler` of a normal distribution with diagonal covariance, from [D] and [D]."""

    def sample(key: Array) -> Array:
        z = jax.random.normal(key, (count, mean.shape[0]), mean.dtype)
        return mean[None] + deviation[None] * z

    return bounds.SearchDistribution(mean, deviation), sample
