"""xNES: natural gradient steps in exponential coordinates, with a full covariance.

Glasmachers, Schaul, Sun, Wierstra & Schmidhuber (2010), doi:10.1145/1830483.1830557, algorithm 1;
Wierstra et al. (2014), JMLR 15:949, table 1 for the rates. Invariant as CMA-ES is. O(D^3) a
generation.

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
from jaxgpu.pytree import pytree, static


def natural_weights(count: int, dtype: jnp.dtype) -> Array:
    """Utilities of the ranks, best first: a logarithm for the better half, of zero sum. [N]."""
    raw = jnp.maximum(0, math.log(count / 2 + 1) - jnp.log(jnp.arange(1, count + 1).astype(dtype)))
    return raw / jnp.sum(raw) - 1 / count


@pytree
class XNES:
    """What to run."""

    population: int = static()  # N
    sigma: Array | float = 0.2  # [] first step size, in widths of the box
    rate: Array | float = 1.0  # [] of the mean
    scale: Array | float = 1.0  # [] of the rates of sigma and shape, times those of the paper

    def __post_init__(self) -> None:
        if self.population < 4:
            raise ValueError(f"XNES: population={self.population}; it must be at least 4")


@pytree
class State:
    """Where the run is: x = mean + sigma width B z, z standard normal, det B = 1."""

    mean: Array  # [D]
    sigma: Array  # [] step size, in widths of the box
    shape: Array  # [D, D] B
    best: Best
    box: Box


@init.register
def _(spec: XNES, key: Array, problem: Problem) -> State:
    mean = start("XNES", key, problem)
    sigma = jnp.asarray(spec.sigma, mean.dtype)
    return State(mean, sigma, jnp.diag(jnp.ones_like(mean)), nothing(problem), problem.box)


@ask.register
def _(spec: XNES, state: State, key: Array) -> Array:
    z = jax.random.normal(key, (spec.population, state.mean.shape[0]), state.mean.dtype)
    y = jnp.matmul(z, state.shape.T, precision="highest")
    return inside(state.box, state.mean[None] + state.sigma * width(state.box)[None] * y)


@tell.register
def _(spec: XNES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    weight = utilities(f, violation, natural_weights(n, x.dtype))
    scale = state.sigma * width(state.box)
    y = (x - state.mean[None]) / scale[None]
    z = jnp.linalg.solve(state.shape, y.T).T
    step = jnp.sum(weight[:, None] * y, axis=0)
    # the weights sum to 0, so the identity in the gradient of the shape drops out
    gradient = jnp.matmul((weight[:, None] * z).T, z, precision="highest")
    growth = jnp.trace(gradient) / d
    gradient = (gradient + gradient.T) / 2 - growth * jnp.eye(d, dtype=x.dtype)
    rate = spec.scale * (9 + 3 * math.log(d)) / (5 * d * math.sqrt(d))
    values, vectors = jnp.linalg.eigh(gradient)
    turn = vectors * jnp.exp(rate / 2 * values)[None]
    turn = jnp.matmul(turn, vectors.T, precision="highest")
    mean = inside(state.box, (state.mean + spec.rate * scale * step)[None])[0]
    sigma = above_zero(state.sigma * jnp.exp(rate / 2 * growth))
    shape = jnp.matmul(state.shape, turn, precision="highest")
    # beyond the last bit of x rounding can make the shape singular; it then stays as it was
    sound = jnp.isfinite(sigma) & jnp.all(jnp.isfinite(mean)) & jnp.all(jnp.isfinite(shape))
    return State(
        jnp.where(sound, mean, state.mean),
        jnp.where(sound, sigma, state.sigma),
        jnp.where(sound, shape, state.shape),
        better(state.best, x, f, violation),
        state.box,
    )
