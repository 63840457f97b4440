"""xNES: natural gradient steps in exponential coordinates, with a full covariance.

Glasmachers, Schaul, Sun, Wierstra & Schmidhuber (2010), doi:10.1145/1830483.1830557, algorithm 1;
Wierstra et al. (2014), JMLR 15:949, table 1 for the rates. Invariant as CMA-ES is. O(D^3) a
generation.

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


def natural_weights(count: int, dtype: jnp.dtype) -> Array:
    """Utilities of the ranks, best first: a logarithm for the better half, of zero sum. [N]."""
    raw = jnp.maximum(0, math.log(count / 2 + 1) - jnp.log(jnp.arange(1, count + 1).astype(dtype)))
    return raw / jnp.sum(raw) - 1 / count


@pytree
class XNES:
    """What to run."""

    population: int = size(least=4)  # N
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    rate: Array | float = number(default=1.0, above=0, one=True)  # [] of the mean
    # [] of the rates of sigma and shape, times those of the paper
    scale: Array | float = number(default=1.0, least=0, one=True)

    def __post_init__(self) -> None:
        if isinstance(self.population, int) and self.population < 4:
            raise ValueError(f"XNES: population={self.population}; it must be at least 4")


@pytree
class State:
    """Where the run is: x = mean + sigma width B z, z standard normal, det B = 1."""

    mean: Array  # [D] free
    sigma: Array  # [] step size, in widths of the box
    shape: Array  # [D, D] B
    best: Best
    box: Box
    key: Array  # [] of the candidates at the sides


@init.register
def _(spec: XNES, key: Array, problem: Problem) -> State:
    mean = bounds.free(problem.box, start(spec, key, problem))
    sigma, own = jnp.asarray(spec.sigma, mean.dtype), bounds.first_key(key)
    return State(mean, sigma, jnp.diag(jnp.ones_like(mean)), nothing(problem), problem.box, own)


def _drawing(spec: XNES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    scale = state.sigma * width(state.box)
    cloud = bounds.Cloud(state.mean, scale * jnp.sqrt(jnp.sum(state.shape**2, axis=1)))

    def draw(key: Array) -> Array:
        z = jax.random.normal(key, (spec.population, state.mean.shape[0]), state.mean.dtype)
        y = jnp.matmul(z, state.shape.T, precision="highest")
        return state.mean[None] + scale[None] * y

    return cloud, draw


@ask.register
def _(spec: XNES, state: State, key: Array) -> Array:
    return bounds.candidates(state.box, state.key, key, *_drawing(spec, state))


@tell.register
def _(spec: XNES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    weight = utilities(f, violation, natural_weights(n, x.dtype))
    scale = state.sigma * width(state.box)
    sampled = bounds.samples(state.box, state.key, x, *_drawing(spec, state))
    y = (sampled - state.mean[None]) / scale[None]
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
    mean = bounds.settled(state.box, state.mean + spec.rate * scale * step)
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
        bounds.next_key(state.key),
    )
