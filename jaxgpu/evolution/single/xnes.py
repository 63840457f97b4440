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
from ..protocol import Algorithm, check_pop_size, told
from . import bounds
from .adaptation import above_zero
from .ranking import Best, about_middle, best_of, checked, unevaluated, utilities, width


def natural_weights(count: int, dtype: jnp.dtype) -> Array:
    """Utilities of the ranks, best first: a logarithm for the better half, of zero sum. [N]."""
    raw = jnp.maximum(0, math.log(count / 2 + 1) - jnp.log(jnp.arange(1, count + 1).astype(dtype)))
    return raw / jnp.sum(raw) - 1 / count


@pytree
class XNES(Algorithm["State"]):
    """What to run."""

    pop_size: int = size(least=4)  # N
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    rate: Array | float = number(default=1.0, above=0, one=True)  # [] of the mean
    # [] of the rates of sigma and shape, times those of the paper
    scale: Array | float = number(default=1.0, least=0, one=True)

    def __post_init__(self) -> None:
        check_pop_size("XNES", self.pop_size)

    @property
    def batch_size(self) -> int:
        """N."""
        return self.pop_size

    def init(self, key: Array, problem: Problem) -> "State":
        """The first mean, uniform in the inner box."""
        problem = checked(self, key, problem)
        mean = bounds.free(problem.box, about_middle(key, problem.box))
        return State(
            mean=mean,
            sigma=jnp.asarray(self.sigma, mean.dtype),
            shape=jnp.diag(jnp.ones_like(mean)),
            best=unevaluated(problem),
            box=problem.box,
            generation=jnp.int32(0),
        )

    def ask(self, state: "State", key: Array) -> Array:
        """N samples of the distribution, inside the box."""
        own = bounds.own_key(state.mean, state.generation)
        return bounds.candidates(state.box, own, key, *_drawing(self, state))

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """A step of the mean, the size and the shape along the natural gradient."""
        x, f, violation = told(self, state, x, f, violation)
        own = bounds.own_key(state.mean, state.generation)
        n, d = x.shape
        weight = utilities(f, violation, natural_weights(n, x.dtype))
        scale = state.sigma * width(state.box)
        sampled = bounds.samples(state.box, own, x, *_drawing(self, state))
        y = (sampled - state.mean[None]) / scale[None]
        z = jnp.linalg.solve(state.shape, y.T).T
        step = jnp.sum(weight[:, None] * y, axis=0)
        # the weights sum to 0, so the identity in the gradient of the shape drops out
        gradient = jnp.matmul((weight[:, None] * z).T, z, precision="highest")
        growth = jnp.trace(gradient) / d
        gradient = (gradient + gradient.T) / 2 - growth * jnp.eye(d, dtype=x.dtype)
        rate = self.scale * (9 + 3 * math.log(d)) / (5 * d * math.sqrt(d))
        values, vectors = jnp.linalg.eigh(gradient)
        turn = vectors * jnp.exp(rate / 2 * values)[None]
        turn = jnp.matmul(turn, vectors.T, precision="highest")
        mean = bounds.settled(state.box, state.mean + self.rate * scale * step)
        sigma = above_zero(state.sigma * jnp.exp(rate / 2 * growth))
        shape = jnp.matmul(state.shape, turn, precision="highest")
        # beyond the last bit of x rounding can make the shape singular; it then stays as it was
        sound = jnp.isfinite(sigma) & jnp.all(jnp.isfinite(mean)) & jnp.all(jnp.isfinite(shape))
        return State(
            mean=jnp.where(sound, mean, state.mean),
            sigma=jnp.where(sound, sigma, state.sigma),
            shape=jnp.where(sound, shape, state.shape),
            best=best_of(state.best, x, f, violation),
            box=state.box,
            generation=state.generation + 1,
        )


@pytree
class State:
    """Where the run is: x = mean + sigma width B z, z standard normal, det B = 1."""

    mean: Array  # [D] free
    sigma: Array  # [] step size, in widths of the box
    shape: Array  # [D, D] B
    best: Best
    box: Box
    generation: Array  # []


def _drawing(spec: XNES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    scale = state.sigma * width(state.box)
    cloud = bounds.Cloud(state.mean, scale * jnp.sqrt(jnp.sum(state.shape**2, axis=1)))

    def draw(key: Array) -> Array:
        z = jax.random.normal(key, (spec.pop_size, state.mean.shape[0]), state.mean.dtype)
        y = jnp.matmul(z, state.shape.T, precision="highest")
        return state.mean[None] + scale[None] * y

    return cloud, draw
