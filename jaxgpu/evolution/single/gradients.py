"""OpenES and PGPE: gradients of the expected rank from mirrored samples, for Adam
(Kingma & Ba 2015, arXiv:1412.6980, with its rates 0.9 and 0.999).

Salimans, Ho, Chen, Sidor & Sutskever (2017), arXiv:1703.03864: one fixed standard deviation.
Sehnke et al. (2010), doi:10.1016/j.neunet.2009.12.004: a deviation for each variable, which is
learnt too. Both shape the objective by centred ranks in [-1/2, 1/2], as the former does; PGPE is
asked for by `learn_sigma`, the rate of its deviations. O(N D).

Departures: PGPE's paper uses the objective itself, a moving baseline and plain steps; here the
ranks need no baseline, Adam steps, and a deviation changes by no more than a fifth at once.
The distribution is not bounded, and its samples are evaluated inside the box (`bounds`).
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, size

from ..problem import Box, Problem
from ..protocol import Algorithm, check_pop_size, told
from . import bounds
from .adaptation import above_zero
from .ranking import Best, about_middle, best_of, checked, unevaluated, utilities, width


@pytree
class OpenES(Algorithm["State"]):
    """What to run: OpenES, or PGPE where `learn_sigma` is above 0."""

    pop_size: int = size(least=4)  # N, even: the candidates are mirrored
    # [] standard deviation, in widths of the box
    sigma: Array | float = number(default=0.05, above=0, unit="widths of the box", one=True)
    # [] step of Adam, in widths of the box
    rate: Array | float = number(default=0.01, above=0, unit="widths of the box", one=True)
    # [] PGPE's rate of the deviations; 0.1 is its paper's
    learn_sigma: Array | float = number(default=0.0, least=0, one=True)

    def __post_init__(self) -> None:
        check_pop_size("OpenES", self.pop_size, even=True)

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
            sigma=self.sigma * width(problem.box),
            first=jnp.zeros_like(mean),
            second=jnp.zeros_like(mean),
            generation=jnp.int32(0),
            best=unevaluated(problem),
            box=problem.box,
        )

    def ask(self, state: "State", key: Array) -> Array:
        """N samples of the distribution in mirrored pairs, inside the box."""
        own = bounds.own_key(state.mean, state.generation)
        return bounds.candidates(state.box, own, key, *_drawing(self, state), twins=True)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """A step of Adam along the gradient of the expected rank."""
        x, f, violation = told(self, state, x, f, violation)
        own = bounds.own_key(state.mean, state.generation)
        n = self.pop_size
        ranks = 0.5 - jnp.arange(n).astype(x.dtype) / (n - 1)
        weight = utilities(f, violation, ranks)[:, None]
        y = bounds.samples(state.box, own, x, *_drawing(self, state))
        z = (y - state.mean[None]) / state.sigma[None]
        downhill = jnp.sum(weight * z, axis=0) / n
        first = 0.9 * state.first + 0.1 * downhill
        second = 0.999 * state.second + 0.001 * downhill**2
        age = (state.generation + 1).astype(x.dtype)
        step = first / (1 - 0.9**age) / (jnp.sqrt(second / (1 - 0.999**age)) + 1e-8)
        wider = self.learn_sigma * jnp.sum(weight * (z * z - 1), axis=0) / n
        return State(
            mean=bounds.settled(state.box, state.mean + self.rate * width(state.box) * step),
            sigma=above_zero(state.sigma * (1 + jnp.clip(wider, -0.2, 0.2))),
            first=first,
            second=second,
            generation=state.generation + 1,
            best=best_of(state.best, x, f, violation),
            box=state.box,
        )


@pytree
class State:
    """Where the run is."""

    mean: Array  # [D] free
    sigma: Array  # [D] standard deviations
    first: Array  # [D] Adam's running mean of the gradients, in standard deviations
    second: Array  # [D] and of their squares
    generation: Array  # []
    best: Best
    box: Box


def pgpe(pop_size: int, sigma: float = 0.1, rate: float = 0.01) -> OpenES:
    """The spec of PGPE."""
    return OpenES(pop_size, sigma, rate, learn_sigma=0.1)


def _drawing(spec: OpenES, state: State) -> tuple[bounds.Cloud, bounds.Draw]:
    def draw(key: Array) -> Array:
        shape = spec.pop_size // 2, state.mean.shape[0]
        half = jax.random.normal(key, shape, state.mean.dtype)
        return state.mean[None] + state.sigma[None] * jnp.concatenate([half, -half])

    return bounds.Cloud(state.mean, state.sigma), draw
