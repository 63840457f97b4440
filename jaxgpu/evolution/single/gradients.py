"""OpenES and PGPE: steps of Adam along gradients of the expected rank, from mirrored samples.

Salimans, Ho, Chen, Sidor & Sutskever (2017), arXiv:1703.03864: one fixed standard deviation. Sehnke
et al. (2010), doi:10.1016/j.neunet.2009.12.004: learned standard deviations, one per variable. Both
shape the objective by centered ranks in [-1/2, 1/2], as the former does. PGPE is selected by
`learn_sigma`, the learning rate of its deviations. Adam (Kingma & Ba 2015, arXiv:1412.6980) has its
rates 0.9 and 0.999. O(N D).

Differences: PGPE's paper uses the objective itself, a moving baseline and plain gradient steps.
Here ranks need no baseline, steps are Adam's, and a deviation changes by at most a fifth per
generation. The distribution is unbounded, and its samples are mapped into the box (`bounds`).
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import number, pytree

from ..problem import Box
from . import bounds
from .adaptation import avoid_underflow
from .ranking import utilities, width
from .strategy import Strategy, StrategyState


@pytree
class OpenES(Strategy["State"]):
    """OpenES (Salimans et al. 2017), or PGPE (Sehnke et al. 2010) if `learn_sigma` is above 0.

    >>> from jaxgpu.evolution import Problem, box, evolve
    >>> valley = Problem(box(-5.0, 5.0, 2), lambda x: jnp.sum((x - 1) ** 2))
    >>> state = jax.jit(evolve)(OpenES(20, rate=0.05), valley, jax.random.key(0), 100)
    >>> bool(state.best.f < 0.1)
    True
    """

    # [] standard deviation, in widths of the box
    sigma: Array | float = number(default=0.05, above=0, unit="widths of the box", one=True)
    # [] step of Adam, in widths of the box
    rate: Array | float = number(default=0.01, above=0, unit="widths of the box", one=True)
    # [] PGPE's learning rate of the deviations; 0.1 in its paper
    learn_sigma: Array | float = number(default=0.0, least=0, one=True)

    mirrored = True

    def begin(self, mean: Array, box: Box, **placed: Any) -> "State":
        return State(
            mean=mean,
            box=box,
            sigma=self.sigma * width(box),
            first=jnp.zeros_like(mean),
            second=jnp.zeros_like(mean),
            **placed,
        )

    def sampler(self, state: "State") -> tuple[bounds.SearchDistribution, bounds.Sampler]:
        def sample(key: Array) -> Array:
            shape = self.pop_size // 2, state.mean.shape[0]
            half = jax.random.normal(key, shape, state.mean.dtype)
            return state.mean[None] + state.sigma[None] * jnp.concatenate([half, -half])

        return bounds.SearchDistribution(state.mean, state.sigma), sample

    def learn(self, state: "State", y: Array, f: Array, violation: Array) -> "State":
        """Take a step of Adam along the gradient of the expected rank."""
        n = self.pop_size
        ranks = 0.5 - jnp.arange(n).astype(y.dtype) / (n - 1)
        weight = utilities(f, violation, ranks)[:, None]
        z = (y - state.mean[None]) / state.sigma[None]
        downhill = jnp.sum(weight * z, axis=0) / n
        first = 0.9 * state.first + 0.1 * downhill
        second = 0.999 * state.second + 0.001 * downhill**2
        age = (state.generation + 1).astype(y.dtype)
        step = first / (1 - 0.9**age) / (jnp.sqrt(second / (1 - 0.999**age)) + 1e-8)
        wider = self.learn_sigma * jnp.sum(weight * (z * z - 1), axis=0) / n
        return replace(
            state,
            mean=bounds.wrap_mean(state.box, state.mean + self.rate * width(state.box) * step),
            sigma=avoid_underflow(state.sigma * (1 + jnp.clip(wider, -0.2, 0.2))),
            first=first,
            second=second,
        )


@pytree
class State(StrategyState):
    """State of an OpenES or PGPE run."""

    sigma: Array  # [D] standard deviations
    first: Array  # [D] Adam's running mean of the gradients, in standard deviations
    second: Array  # [D] Adam's running mean of their squares


@explain_errors
def pgpe(pop_size: int, sigma: float = 0.1, rate: float = 0.01) -> OpenES:
    """Return the spec of PGPE.

    >>> from jaxgpu.evolution import Problem, box, evolve
    >>> valley = Problem(box(-5.0, 5.0, 2), lambda x: jnp.sum((x - 1) ** 2))
    >>> state = jax.jit(evolve)(pgpe(20, rate=0.05), valley, jax.random.key(0), 100)
    >>> bool(state.best.f < 0.1)
    True
    """
    spec = OpenES(pop_size, sigma, rate, learn_sigma=0.1)
    ranges.check("pgpe", spec)
    return spec
