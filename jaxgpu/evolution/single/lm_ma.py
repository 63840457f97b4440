"""LM-MA-ES: CMA-ES for many variables, from m = O(log D) directions in place of a matrix.

Loshchilov, Glasmachers & Beyer (2019), doi:10.1109/TEVC.2018.2855049, algorithm 2. A candidate is
a normal vector passed through m maps (1 - c) I + c v v^T. O(N D m) time, O((N + m) D) memory.

Departures: rates that the paper makes proportional to the population are at most 1, without
which a population of more than D / 2 diverges; sigma grows at most by e in a generation. The
normal vectors are recovered from the candidates by inverting the maps, so that candidates moved
into the box are learnt from as such.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.evolution.population import inside
from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.evolution.protocol import ask, init, tell
from jaxgpu.evolution.single.adaptation import above_zero, rates, walked
from jaxgpu.evolution.single.cma import default_population
from jaxgpu.evolution.single.ranking import Best, better, nothing, start, utilities, width
from jaxgpu.pytree import pytree, static


@pytree
class LMMAES:
    """What to run."""

    population: int = static()  # N
    sigma: Array | float = 0.2  # [] first step size, in widths of the box

    def __post_init__(self) -> None:
        if self.population < 4:
            raise ValueError(f"LMMAES: population={self.population}; it must be at least 4")


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D]
    sigma: Array  # [] step size, in widths of the box
    vectors: Array  # [M, D] directions of the maps, the fastest first
    path: Array  # [D] p_sigma
    generation: Array  # []
    best: Best
    box: Box


@init.register
def _(spec: LMMAES, key: Array, problem: Problem) -> State:
    mean = start("LMMAES", key, problem)
    vectors = jnp.zeros((default_population(mean.shape[0]), mean.shape[0]), mean.dtype)
    sigma = jnp.asarray(spec.sigma, mean.dtype)
    zero, best = jnp.zeros_like(mean), nothing(problem)
    return State(mean, sigma, vectors, zero, jnp.int32(0), best, problem.box)


def _mixing(count: int, dimension: int, dtype: jnp.dtype) -> Array:
    """c_d of each map: how much of it is the direction."""
    return jnp.asarray(1 / (1.5 ** np.arange(count) * dimension), dtype)


@ask.register
def _(spec: LMMAES, state: State, key: Array) -> Array:
    m, d = state.vectors.shape
    z = jax.random.normal(key, (spec.population, d), state.mean.dtype)

    def through(i: Array, y: Array) -> Array:
        v, c = state.vectors[i], _mixing(m, d, y.dtype)[i]
        return (1 - c) * y + c * jnp.sum(y * v[None], axis=1, keepdims=True) * v[None]

    y = lax.fori_loop(0, jnp.minimum(state.generation, m), through, z)
    return inside(state.box, state.mean[None] + state.sigma * width(state.box)[None] * y)


@tell.register
def _(spec: LMMAES, state: State, x: Array, f: Array, violation: Array) -> State:
    n, d = x.shape
    m = state.vectors.shape[0]
    learn = rates(n, float(n), d, x.dtype)
    weight = utilities(f, violation, jnp.maximum(learn.weights, 0))
    scale = state.sigma * width(state.box)
    step = jnp.sum(weight[:, None] * (x - state.mean[None]), axis=0) / scale
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
    path = walked(state.path, jnp.asarray(c_sigma, x.dtype), learn.mu_eff, z)
    vectors = walked(state.vectors, c_path[:, None], learn.mu_eff, z[None])
    growth = c_sigma / 2 * (jnp.sum(path * path) / d - 1)
    return State(
        inside(state.box, (state.mean + scale * step)[None])[0],
        above_zero(state.sigma * jnp.exp(jnp.minimum(1, growth))),
        vectors,
        path,
        state.generation + 1,
        better(state.best, x, f, violation),
        state.box,
    )
