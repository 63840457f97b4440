"""Sep-CMA-ES: CMA-ES with a diagonal covariance, in O(N D) time and memory.

Ros & Hansen (2008), doi:10.1007/978-3-540-87700-4_30: as the covariance has D parameters to learn
instead of D^2 / 2, its rates are (D + 2) / 3 times those of CMA-ES. Negative weights are omitted,
as in the paper; the other differences are those of `cma`.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree

from ..problem import Box
from . import bounds
from .adaptation import avoid_underflow, is_path_long, rates, step_size, update_path
from .ranking import utilities, width
from .strategy import Strategy, StrategyState, normal_sampler


@pytree
class SepCMAES(Strategy["State"]):
    """Sep-CMA-ES (Ros & Hansen 2008): CMA-ES with a diagonal covariance.

    >>> from jaxgpu.evolution import Real, minimize
    >>> found = minimize(lambda x: (x - 1) ** 2, Real(-5, 5), 720, algorithm=SepCMAES(12))
    >>> print(found.x.round(2))
    1.0
    """

    def begin(self, mean: Array, box: Box, **placed: Any) -> "State":
        return State(
            mean=mean,
            box=box,
            sigma=jnp.asarray(self.sigma, mean.dtype),
            variance=jnp.ones_like(mean),
            path=jnp.zeros_like(mean),
            step_path=jnp.zeros_like(mean),
            **placed,
        )

    def sampler(self, state: "State") -> tuple[bounds.SearchDistribution, bounds.Sampler]:
        scale = state.sigma * width(state.box) * jnp.sqrt(state.variance)
        return normal_sampler(state.mean, scale, self.pop_size)

    def learn(self, state: "State", y: Array, f: Array, violation: Array) -> "State":
        n, d = y.shape
        learn = rates(n, float(n), d, y.dtype)
        weight = utilities(f, violation, jnp.maximum(learn.weights, 0))
        scale = state.sigma * width(state.box)
        y = (y - state.mean[None]) / scale[None]
        step = jnp.sum(weight[:, None] * y, axis=0)
        mean = bounds.wrap_mean(state.box, state.mean + scale * step)
        along = step / jnp.sqrt(state.variance)
        step_path = update_path(state.step_path, learn.sigma, learn.mu_eff, along)
        wait = is_path_long(learn, step_path, state.generation)
        path = update_path(state.path, learn.path, learn.mu_eff, jnp.where(wait, 0, step))
        faster = jnp.minimum((d + 2) / 3, 1 / (learn.one + learn.mu))
        one, mu = faster * learn.one, faster * learn.mu
        kept = 1 - one - mu + jnp.where(wait, one * learn.path * (2 - learn.path), 0)
        spread = jnp.sum(weight[:, None] * y * y, axis=0)
        variance = kept * state.variance + one * path * path + mu * spread
        sigma = step_size(learn, state.sigma, step_path)
        least = avoid_underflow(jnp.finfo(y.dtype).eps ** 2 * jnp.max(variance))
        variance = jnp.maximum(variance, least)
        return replace(
            state, mean=mean, sigma=sigma, variance=variance, path=path, step_path=step_path
        )


@pytree
class State(StrategyState):
    """State of a Sep-CMA-ES run: x = mean + sigma width sqrt(variance) z, z standard normal."""

    sigma: Array  # [] step size, in widths of the box
    variance: Array  # [D] diagonal of C
    path: Array  # [D] p_c, path of the covariance
    step_path: Array  # [D] p_sigma, path of the step size
