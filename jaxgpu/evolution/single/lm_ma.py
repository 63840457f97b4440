"""LM-MA-ES: CMA-ES for many variables, from m = O(log D) directions in place of a matrix.

Loshchilov, Glasmachers & Beyer (2019), doi:10.1109/TEVC.2018.2855049, algorithm 2. A candidate is
a normal vector passed through m maps (1 - c) I + c v v^T. O(N D m) time, O((N + m) D) memory.

Departures: rates that the paper makes proportional to the population are at most 1, without
which a population of more than D / 2 diverges; sigma grows at most by e in a generation, and to one
width of the box; of equal candidates the effective number is that of their shared weights. The
normal vectors are recovered from the samples by inverting the maps; the distribution is not
bounded, and its samples are evaluated inside the box (`bounds`).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.pytree import number, pytree, size

from ..problem import Box, Problem
from ..protocol import ask, init, tell
from . import bounds
from .adaptation import above_zero, rates, walked
from .cma import default_population
from .ranking import Best, better, nothing, start, utilities, width

WIDEST = 1.0  # step, in widths of the box: the points of longer ones come from everywhere in it


@pytree
class LMMAES:
    """What to run."""

    population: int = size(least=4)  # N
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)

    def __post_init__(self) -> None:
        if isinstance(self.population, int) and self.population < 4:
            raise ValueError(f"LMMAES: population={self.population}; it must be at least 4")


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D] free
    sigma: Array  # [] step size, in widths of the box
    vectors: Array  # [M, D] directions of the maps, the fastest first
    path: Array  # [D] p_sigma
    generation: Array  # []
    best: Best
    box: Box
    key: Array  # [] of the candidates at the sides


@init.register
def _(spec: LMMAES, key: Array, problem: Problem) -> State:
    mean = bounds.free(problem.box, start(spec, key, problem))
    vectors = jnp.zeros((default_population(mean.shape[0]), mean.shape[0]), mean.dtype)
    sigma = jnp.asarray(spec.sigma, mean.dtype)
    zero, best, own = jnp.zeros_like(mean), nothing(problem), bounds.first_key(key)
    return State(mean, sigma, vectors, zero, jnp.int32(0), best, problem.box, own)


def _mixing(count: int, dimension: int, dtype: jnp.dtype) -> Array:
    """c_d of each map: how much of it is the direction."""
    return jnp.asarray(1 / (1.5 ** np.arange(count) * dimension), dtype)


def _drawing(spec: LMMAES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    m, d = state.vectors.shape
    scale, mixing = state.sigma * width(state.box), _mixing(m, d, state.mean.dtype)
    used = jnp.minimum(state.generation, m)

    def through(i: Array, y: Array) -> Array:
        v, c = state.vectors[i], mixing[i]
        return (1 - c) * y + c * jnp.sum(y * v[None], axis=1, keepdims=True) * v[None]

    def draw(key: Array) -> Array:
        z = jax.random.normal(key, (spec.population, d), state.mean.dtype)
        y = lax.fori_loop(0, used, through, z)
        return state.mean[None] + scale[None] * y

    # no deviation is longer than the product of the norms of the maps
    norms = 1 - mixing + mixing * jnp.sum(state.vectors**2, axis=1)
    longest = jnp.prod(jnp.where(jnp.arange(m, dtype=jnp.int32) < used, jnp.maximum(norms, 1), 1))
    return bounds.Cloud(state.mean, scale * longest), draw


@ask.register
def _(spec: LMMAES, state: State, key: Array) -> Array:
    return bounds.candidates(state.box, state.key, key, *_drawing(spec, state))


@tell.register
def _(spec: LMMAES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    m = state.vectors.shape[0]
    learn = rates(n, float(n), d, x.dtype)
    weight = utilities(f, violation, jnp.maximum(learn.weights, 0))
    scale = state.sigma * width(state.box)
    y = bounds.samples(state.box, state.key, x, *_drawing(spec, state))
    step = jnp.sum(weight[:, None] * (y - state.mean[None]), axis=0) / scale
    used = jnp.minimum(state.generation, m)

    def back(k: Array, y: Array) -> Array:
        # the inverse of one map (Sherman & Morrison); the maps are linear, and so is the mean
        i = used - 1 - k
        v, c = state.vectors[i], _mixing(m, d, y.dtype)[i]
        inner = jnp.sum(v * y) / (1 - c + c * jnp.sum(v * v))
        return (y - c * inner * v) / (1 - c)

    z = lax.fori_loop(0, used, back, step)
    c_sigma = min(1.0, 2 * n / d)
    c_path = jnp.asarray(np.minimum(1, n / (4.0 ** np.arange(m) * d)), x.dtype)
    # where candidates are equal more of them count, and steps are shorter: without this a run that
    # begins where all fail shrinks its steps to nothing
    count = 1 / jnp.sum(weight * weight)
    mu_eff = jnp.where(count > 1.001 * learn.mu_eff, count, learn.mu_eff)
    path = walked(state.path, jnp.asarray(c_sigma, x.dtype), mu_eff, z)
    vectors = walked(state.vectors, c_path[:, None], mu_eff, z[None])
    growth = c_sigma / 2 * (jnp.sum(path * path) / d - 1)
    return State(
        bounds.settled(state.box, state.mean + scale * step),
        jnp.minimum(above_zero(state.sigma * jnp.exp(jnp.minimum(1, growth))), WIDEST),
        vectors,
        path,
        state.generation + 1,
        better(state.best, x, f, violation),
        state.box,
        bounds.next_key(state.key),
    )
