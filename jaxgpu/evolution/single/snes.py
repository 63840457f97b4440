"""SNES: natural gradient steps with a diagonal covariance, in O(N D).

Schaul, Glasmachers & Schmidhuber (2011), doi:10.1145/2001576.2001692; Wierstra et al. (2014), JMLR
15:949, table 1 for the rates.

Difference: the distribution is unbounded, and its samples are mapped into the box, see `bounds`.
"""

import math
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from ..problem import Box
from . import bounds
from .adaptation import avoid_underflow
from .ranking import utilities, width
from .strategy import StrategyState, normal_sampler
from .xnes import NaturalStrategy, natural_weights


@pytree
class SNES(NaturalStrategy["State"]):
    """SNES (Schaul et al. 2011), a natural evolution strategy with a diagonal covariance.

    >>> from jaxgpu.evolution import Real, minimize
    >>> found = minimize(lambda x: (x - 1) ** 2, Real(-5, 5), 720, algorithm=SNES(12))
    >>> print(found.x.round(2))
    1.0
    """

    def begin(self, mean: Array, box: Box, **placed: Any) -> "State":
        return State(mean=mean, box=box, sigma=self.sigma * width(box), **placed)

    def sampler(self, state: "State") -> tuple[bounds.SearchDistribution, bounds.Sampler]:
        return normal_sampler(state.mean, state.sigma, self.pop_size)

    def learn(self, state: "State", y: Array, f: Array, violation: Array) -> "State":
        """Move the mean and the deviations along the natural gradient."""
        n, d = y.shape
        weight = utilities(f, violation, natural_weights(n, y.dtype))[:, None]
        z = (y - state.mean[None]) / state.sigma[None]
        rate = self.scale * (3 + math.log(d)) / (5 * math.sqrt(d))
        step = self.rate * state.sigma * jnp.sum(weight * z, axis=0)
        # the weights sum to 0, so the -1 of z^2 - 1 drops out
        sigma = avoid_underflow(state.sigma * jnp.exp(rate / 2 * jnp.sum(weight * z * z, axis=0)))
        return replace(state, mean=bounds.wrap_mean(state.box, state.mean + step), sigma=sigma)


@pytree
class State(StrategyState):
    """State of an SNES run."""

    sigma: Array  # [D] standard deviations
