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
from ..protocol import Algorithm, check_pop_size, told
from . import bounds
from .adaptation import above_zero, cumulated, rates
from .cma import default_pop_size
from .ranking import Best, about_middle, best_of, checked, unevaluated, utilities, width

WIDEST = 1.0  # step, in widths of the box: the points of longer ones come from everywhere in it


@pytree
class LMMAES(Algorithm["State"]):
    """What to run."""

    pop_size: int = size(least=4)  # N
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)

    def __post_init__(self) -> None:
        check_pop_size("LMMAES", self.pop_size)

    @property
    def batch_size(self) -> int:
        """N."""
        return self.pop_size

    def init(self, key: Array, problem: Problem) -> "State":
        """The first mean, uniform in the inner box."""
        problem = checked(self, key, problem)
        mean = bounds.free(problem.box, about_middle(key, problem.box))
        d = mean.shape[0]
        return State(
            mean=mean,
            sigma=jnp.asarray(self.sigma, mean.dtype),
            vectors=jnp.zeros((default_pop_size(d), d), mean.dtype),
            path=jnp.zeros_like(mean),
            generation=jnp.int32(0),
            best=unevaluated(problem),
            box=problem.box,
        )

    def ask(self, state: "State", key: Array) -> Array:
        """N samples of the distribution, inside the box."""
        own = bounds.own_key(state.mean, state.generation)
        return bounds.candidates(state.box, own, key, *_drawing(self, state))

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """The distribution after one generation."""
        x, f, violation = told(self, state, x, f, violation)
        own = bounds.own_key(state.mean, state.generation)
        n, d = x.shape
        m = state.vectors.shape[0]
        learn = rates(n, float(n), d, x.dtype)
        weight = utilities(f, violation, jnp.maximum(learn.weights, 0))
        scale = state.sigma * width(state.box)
        y = bounds.samples(state.box, own, x, *_drawing(self, state))
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
        # where candidates are equal more of them count, and steps are shorter: without this a run
        # that begins where all fail shrinks its steps to nothing
        count = 1 / jnp.sum(weight * weight)
        mu_eff = jnp.where(count > 1.001 * learn.mu_eff, count, learn.mu_eff)
        path = cumulated(state.path, jnp.asarray(c_sigma, x.dtype), mu_eff, z)
        vectors = cumulated(state.vectors, c_path[:, None], mu_eff, z[None])
        growth = c_sigma / 2 * (jnp.sum(path * path) / d - 1)
        return State(
            mean=bounds.settled(state.box, state.mean + scale * step),
            sigma=jnp.minimum(above_zero(state.sigma * jnp.exp(jnp.minimum(1, growth))), WIDEST),
            vectors=vectors,
            path=path,
            generation=state.generation + 1,
            best=best_of(state.best, x, f, violation),
            box=state.box,
        )


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
        z = jax.random.normal(key, (spec.pop_size, d), state.mean.dtype)
        y = lax.fori_loop(0, used, through, z)
        return state.mean[None] + scale[None] * y

    # no deviation is longer than the product of the norms of the maps
    norms = 1 - mixing + mixing * jnp.sum(state.vectors**2, axis=1)
    longest = jnp.prod(jnp.where(jnp.arange(m, dtype=jnp.int32) < used, jnp.maximum(norms, 1), 1))
    return bounds.Cloud(state.mean, scale * longest), draw
