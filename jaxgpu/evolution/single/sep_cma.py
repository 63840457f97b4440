"""Sep-CMA-ES: CMA-ES with a diagonal covariance, in O(N D) time and memory.

Ros & Hansen (2008), doi:10.1007/978-3-540-87700-4_30: as the covariance has D numbers to learn
and not D^2 / 2, its rates are (D + 2) / 3 times those of CMA-ES. Negative weights are left out,
as in the paper; the other departures are those of `cma`.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size

from ..problem import Box, Problem
from ..protocol import ask, init, tell
from . import bounds
from .adaptation import above_zero, rates, stalled, step_size, walked
from .ranking import Best, better, nothing, start, utilities, width


@pytree
class SepCMAES:
    """What to run."""

    population: int = size(least=4)  # N
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)

    def __post_init__(self) -> None:
        if isinstance(self.population, int) and self.population < 4:
            raise ValueError(f"SepCMAES: population={self.population}; it must be at least 4")


@pytree
class State:
    """Where the run is: x = mean + sigma width sqrt(variance) z, z standard normal."""

    mean: Array  # [D] free
    sigma: Array  # [] step size, in widths of the box
    variance: Array  # [D] diagonal of C
    path: Array  # [D] p_c
    step_path: Array  # [D] p_sigma
    generation: Array  # []
    best: Best
    box: Box
    key: Array  # [] of the candidates at the sides


@init.register
def _(spec: SepCMAES, key: Array, problem: Problem) -> State:
    mean = bounds.free(problem.box, start(spec, key, problem))
    zero, sigma = jnp.zeros_like(mean), jnp.asarray(spec.sigma, mean.dtype)
    best, box, own = nothing(problem), problem.box, bounds.first_key(key)
    return State(mean, sigma, jnp.ones_like(mean), zero, zero, jnp.int32(0), best, box, own)


def _drawing(spec: SepCMAES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    scale = state.sigma * width(state.box) * jnp.sqrt(state.variance)
    cloud = bounds.Cloud(state.mean, scale)

    def draw(key: Array) -> Array:
        z = jax.random.normal(key, (spec.population, state.mean.shape[0]), state.mean.dtype)
        return state.mean[None] + scale[None] * z

    return cloud, draw


@ask.register
def _(spec: SepCMAES, state: State, key: Array) -> Array:
    return bounds.candidates(state.box, state.key, key, *_drawing(spec, state))


@tell.register
def _(spec: SepCMAES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    learn = rates(n, float(n), d, x.dtype)
    weight = utilities(f, violation, jnp.maximum(learn.weights, 0))
    scale = state.sigma * width(state.box)
    sampled = bounds.samples(state.box, state.key, x, *_drawing(spec, state))
    y = (sampled - state.mean[None]) / scale[None]
    step = jnp.sum(weight[:, None] * y, axis=0)
    mean = bounds.settled(state.box, state.mean + scale * step)
    along = step / jnp.sqrt(state.variance)
    step_path = walked(state.step_path, learn.sigma, learn.mu_eff, along)
    wait = stalled(learn, step_path, state.generation)
    path = walked(state.path, learn.path, learn.mu_eff, jnp.where(wait, 0, step))
    faster = jnp.minimum((d + 2) / 3, 1 / (learn.one + learn.mu))
    one, mu = faster * learn.one, faster * learn.mu
    kept = 1 - one - mu + jnp.where(wait, one * learn.path * (2 - learn.path), 0)
    spread = jnp.sum(weight[:, None] * y * y, axis=0)
    variance = kept * state.variance + one * path * path + mu * spread
    sigma = step_size(learn, state.sigma, step_path)
    best = better(state.best, x, f, violation)
    variance = jnp.maximum(variance, above_zero(jnp.finfo(x.dtype).eps ** 2 * jnp.max(variance)))
    age, own = state.generation + 1, bounds.next_key(state.key)
    return State(mean, sigma, variance, path, step_path, age, best, state.box, own)
