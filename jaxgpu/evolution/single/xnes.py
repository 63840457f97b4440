"""xNES: natural gradient steps in exponential coordinates, with a full covariance.

Glasmachers, Schaul, Sun, Wierstra & Schmidhuber (2010), doi:10.1145/1830483.1830557, algorithm 1;
Wierstra et al. (2014), JMLR 15:949, table 1 for the rates. It has the invariances of CMA-ES. O(D^3)
per generation.

Difference: the distribution is unbounded, and its samples are mapped into the box, see `bounds`.
"""

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree

from ..problem import Box
from . import bounds
from .adaptation import avoid_underflow
from .ranking import utilities, width
from .strategy import Strategy, StrategyState


def natural_weights(count: int, dtype: jnp.dtype) -> Array:
    """Return the utilities [N] of ranks, best first: logarithmic for the better half, zero sum."""
    raw = jnp.maximum(0, math.log(count / 2 + 1) - jnp.log(jnp.arange(1, count + 1).astype(dtype)))
    return raw / jnp.sum(raw) - 1 / count


@pytree
class NaturalStrategy[S: StrategyState](Strategy[S]):
    """Base class of strategies that follow natural gradients."""

    rate: Array | float = number(default=1.0, above=0, one=True)  # [] learning rate of the mean
    # [] factor on the paper's learning rates of the deviations
    scale: Array | float = number(default=1.0, least=0, one=True)


@pytree
class XNES(NaturalStrategy["State"]):
    """xNES (Glasmachers et al. 2010), a natural evolution strategy with a full covariance.

    >>> from jaxgpu.evolution import Real, minimize
    >>> found = minimize(lambda x: (x - 1) ** 2, Real(-5, 5), 720, algorithm=XNES(12))
    >>> print(found.x.round(2))
    1.0
    """

    def begin(self, mean: Array, box: Box, **placed: Any) -> "State":
        sigma, shape = jnp.asarray(self.sigma, mean.dtype), jnp.diag(jnp.ones_like(mean))
        return State(mean=mean, box=box, sigma=sigma, shape=shape, **placed)

    def sampler(self, state: "State") -> tuple[bounds.SearchDistribution, bounds.Sampler]:
        scale = state.sigma * width(state.box)
        cloud = bounds.SearchDistribution(
            state.mean, scale * jnp.sqrt(jnp.sum(state.shape**2, axis=1))
        )

        def sample(key: Array) -> Array:
            z = jax.random.normal(key, (self.pop_size, state.mean.shape[0]), state.mean.dtype)
            y = jnp.matmul(z, state.shape.T, precision="highest")
            return state.mean[None] + scale[None] * y

        return cloud, sample

    def learn(self, state: "State", y: Array, f: Array, violation: Array) -> "State":
        """Move the mean, the size and the shape along the natural gradient."""
        n, d = y.shape
        weight = utilities(f, violation, natural_weights(n, y.dtype))
        scale = state.sigma * width(state.box)
        y = (y - state.mean[None]) / scale[None]
        z = jnp.linalg.solve(state.shape, y.T).T
        step = jnp.sum(weight[:, None] * y, axis=0)
        # the weights sum to 0, so the identity in the gradient of the shape drops out
        gradient = jnp.matmul((weight[:, None] * z).T, z, precision="highest")
        growth = jnp.trace(gradient) / d
        gradient = (gradient + gradient.T) / 2 - growth * jnp.eye(d, dtype=y.dtype)
        rate = self.scale * (9 + 3 * math.log(d)) / (5 * d * math.sqrt(d))
        values, vectors = jnp.linalg.eigh(gradient)
        turn = vectors * jnp.exp(rate / 2 * values)[None]
        turn = jnp.matmul(turn, vectors.T, precision="highest")
        mean = bounds.wrap_mean(state.box, state.mean + self.rate * scale * step)
        sigma = avoid_underflow(state.sigma * jnp.exp(rate / 2 * growth))
        shape = jnp.matmul(state.shape, turn, precision="highest")
        # at the limit of precision rounding can make the shape singular; all then stays unchanged
        sound = jnp.isfinite(sigma) & jnp.all(jnp.isfinite(mean)) & jnp.all(jnp.isfinite(shape))
        return replace(
            state,
            mean=jnp.where(sound, mean, state.mean),
            sigma=jnp.where(sound, sigma, state.sigma),
            shape=jnp.where(sound, shape, state.shape),
        )


@pytree
class State(StrategyState):
    """State of an xNES run: x = mean + sigma width B z, z standard normal, det B = 1."""

    sigma: Array  # [] step size, in widths of the box
    shape: Array  # [D, D] B, with determinant 1
