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
from ..protocol import Algorithm, check_pop_size, told
from . import bounds
from .adaptation import above_zero, cumulated, rates, stalled, step_size
from .ranking import Best, about_middle, best_of, checked, unevaluated, utilities, width


@pytree
class SepCMAES(Algorithm["State"]):
    """What to run."""

    pop_size: int = size(least=4)  # N
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)

    def __post_init__(self) -> None:
        check_pop_size("SepCMAES", self.pop_size)

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
            variance=jnp.ones_like(mean),
            path=jnp.zeros_like(mean),
            step_path=jnp.zeros_like(mean),
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
        learn = rates(n, float(n), d, x.dtype)
        weight = utilities(f, violation, jnp.maximum(learn.weights, 0))
        scale = state.sigma * width(state.box)
        sampled = bounds.samples(state.box, own, x, *_drawing(self, state))
        y = (sampled - state.mean[None]) / scale[None]
        step = jnp.sum(weight[:, None] * y, axis=0)
        mean = bounds.settled(state.box, state.mean + scale * step)
        along = step / jnp.sqrt(state.variance)
        step_path = cumulated(state.step_path, learn.sigma, learn.mu_eff, along)
        wait = stalled(learn, step_path, state.generation)
        path = cumulated(state.path, learn.path, learn.mu_eff, jnp.where(wait, 0, step))
        faster = jnp.minimum((d + 2) / 3, 1 / (learn.one + learn.mu))
        one, mu = faster * learn.one, faster * learn.mu
        kept = 1 - one - mu + jnp.where(wait, one * learn.path * (2 - learn.path), 0)
        spread = jnp.sum(weight[:, None] * y * y, axis=0)
        variance = kept * state.variance + one * path * path + mu * spread
        sigma = step_size(learn, state.sigma, step_path)
        best = best_of(state.best, x, f, violation)
        variance = jnp.maximum(
            variance, above_zero(jnp.finfo(x.dtype).eps ** 2 * jnp.max(variance))
        )
        return State(
            mean=mean,
            sigma=sigma,
            variance=variance,
            path=path,
            step_path=step_path,
            generation=state.generation + 1,
            best=best,
            box=state.box,
        )


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


def _drawing(spec: SepCMAES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    scale = state.sigma * width(state.box) * jnp.sqrt(state.variance)
    cloud = bounds.Cloud(state.mean, scale)

    def draw(key: Array) -> Array:
        z = jax.random.normal(key, (spec.pop_size, state.mean.shape[0]), state.mean.dtype)
        return state.mean[None] + scale[None] * z

    return cloud, draw
