"""LM-MA-ES: CMA-ES for many variables, with m = O(log D) directions instead of a matrix.

Loshchilov, Glasmachers & Beyer (2019), doi:10.1109/TEVC.2018.2855049, algorithm 2. A candidate is a
normal vector transformed by m maps (1 - c) I + c v v^T. O(N D m) time, O((N + m) D) memory.

Differences from the paper: rates that it makes proportional to the population are at most 1;
otherwise populations larger than D / 2 diverge. Sigma grows at most by e per generation, and to at
most one width of the box. For equal candidates the effective number is that of their shared
weights. The normal vectors are recovered from the samples by inverting the maps. The distribution
is unbounded, and its samples are mapped into the box (`bounds`).
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs.fields import pytree

from ..problem import Box
from . import bounds
from .adaptation import avoid_underflow, rates, update_path
from .cma import default_pop_size
from .ranking import utilities, width
from .strategy import Strategy, StrategyState

MAX_SIGMA = 1.0  # maximum step, in widths of the box; longer steps reach every part of the box


@pytree
class LMMAES(Strategy["State"]):
    """LM-MA-ES (Loshchilov, Glasmachers & Beyer 2019), for many variables.

    >>> from jaxgpu.evolution import Problem, box, evolve
    >>> valley = Problem(box(-5.0, 5.0, 10), lambda x: jnp.sum((x - 1) ** 2))
    >>> state = jax.jit(evolve)(LMMAES(12), valley, jax.random.key(0), 150)
    >>> bool(state.best.f < 1e-3)
    True
    """

    def begin(self, mean: Array, box: Box, **placed: Any) -> "State":
        d = mean.shape[0]
        return State(
            mean=mean,
            box=box,
            sigma=jnp.asarray(self.sigma, mean.dtype),
            vectors=jnp.zeros((default_pop_size(d), d), mean.dtype),
            path=jnp.zeros_like(mean),
            **placed,
        )

    def sampler(self, state: "State") -> tuple[bounds.SearchDistribution, bounds.Sampler]:
        m, d = state.vectors.shape
        scale, mixing = state.sigma * width(state.box), _map_weights(m, d, state.mean.dtype)
        used = jnp.minimum(state.generation, m)

        def apply_map(i: Array, y: Array) -> Array:
            v, c = state.vectors[i], mixing[i]
            return (1 - c) * y + c * jnp.sum(y * v[None], axis=1, keepdims=True) * v[None]

        def sample(key: Array) -> Array:
            z = jax.random.normal(key, (self.pop_size, d), state.mean.dtype)
            y = lax.fori_loop(0, used, apply_map, z)
            return state.mean[None] + scale[None] * y

        # standard deviations are at most the product of the norms of the maps
        norms = 1 - mixing + mixing * jnp.sum(state.vectors**2, axis=1)
        applied = jnp.arange(m, dtype=jnp.int32) < used
        longest = jnp.prod(jnp.where(applied, jnp.maximum(norms, 1), 1))
        return bounds.SearchDistribution(state.mean, scale * longest), sample

    def learn(self, state: "State", y: Array, f: Array, violation: Array) -> "State":
        n, d = y.shape
        m = state.vectors.shape[0]
        learn = rates(n, float(n), d, y.dtype)
        weight = utilities(f, violation, jnp.maximum(learn.weights, 0))
        scale = state.sigma * width(state.box)
        step = jnp.sum(weight[:, None] * (y - state.mean[None]), axis=0) / scale
        used = jnp.minimum(state.generation, m)

        def invert_map(k: Array, y: Array) -> Array:
            # invert one map (Sherman & Morrison); the maps are linear, so the mean can be inverted
            i = used - 1 - k
            v, c = state.vectors[i], _map_weights(m, d, y.dtype)[i]
            inner = jnp.sum(v * y) / (1 - c + c * jnp.sum(v * v))
            return (y - c * inner * v) / (1 - c)

        z = lax.fori_loop(0, used, invert_map, step)
        c_sigma = min(1.0, 2 * n / d)
        c_path = jnp.asarray(np.minimum(1, n / (4.0 ** np.arange(m) * d)), y.dtype)
        # equal candidates raise the effective number and shorten steps: without this, a run that
        # starts where all evaluations fail would shrink its steps to zero
        count = 1 / jnp.sum(weight * weight)
        mu_eff = jnp.where(count > 1.001 * learn.mu_eff, count, learn.mu_eff)
        path = update_path(state.path, jnp.asarray(c_sigma, y.dtype), mu_eff, z)
        vectors = update_path(state.vectors, c_path[:, None], mu_eff, z[None])
        growth = c_sigma / 2 * (jnp.sum(path * path) / d - 1)
        return replace(
            state,
            mean=bounds.wrap_mean(state.box, state.mean + scale * step),
            sigma=jnp.minimum(
                avoid_underflow(state.sigma * jnp.exp(jnp.minimum(1, growth))), MAX_SIGMA
            ),
            vectors=vectors,
            path=path,
        )


@pytree
class State(StrategyState):
    """State of an LM-MA-ES run."""

    sigma: Array  # [] step size, in widths of the box
    vectors: Array  # [M, D] directions of the maps, the fastest first
    path: Array  # [D] p_sigma, path of the step size


def _map_weights(count: int, dimension: int, dtype: jnp.dtype) -> Array:
    """Return c_d of each map: the weight of its direction."""
    return jnp.asarray(1 / (1.5 ** np.arange(count) * dimension), dtype)
