"""Sampling-based planners: CEM and MPPI.

`CEM`, the cross-entropy method (de Boer, Kroese, Mannor & Rubinstein 2005,
doi:10.1007/s10479-005-5724-z), fits a normal distribution to the elites of its samples. `MPPI`,
model predictive path integral control (Williams, Drews, Goldfain, Rehg & Theodorou 2018,
doi:10.1109/TRO.2018.2865891, algorithm 2), moves the mean to the average of the samples, weighted
by exp(-loss / temperature). Its control cost is omitted, and the temperature is in standard
deviations of the losses. Both sample noise that is correlated in time, e_t = r e_(t-1) + sqrt(1 -
r^2) n_t, since independent noise cancels out over an episode. O(N) losses per update.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree, size

from .objective import BestPlan, Loss


@pytree
class SamplingState:
    """State of a sampling-based planner."""

    actions: Array  # [T, A] mean of the samples
    sigma: Array  # [T, A] standard deviation of the samples
    best: BestPlan
    evaluations: Array  # [] losses computed


@pytree
class CEM:
    """Planner that fits a normal distribution to the elites of its samples.

    >>> from jaxgpu.rl import plan
    >>> bowl = lambda actions: jnp.sum((actions - 0.5) ** 2)
    >>> found = plan.plan(bowl, jnp.zeros((3, 1)), CEM(), 1024, key=jax.random.key(0))
    >>> bool(found.loss < 0.01)
    True
    """

    population: int = size(default=32, least=2)  # N, samples per update
    elites: int = size(default=8, least=2)  # best samples, to which the distribution is fitted
    sigma: Array | float = number(default=0.5, above=0)  # [] initial standard deviation
    keep: Array | float = number(
        default=0.2, least=0, below=1
    )  # [] weight of the previous distribution in the new one
    correlation: Array | float = number(default=0.7, least=0, below=1)  # [] r of the noise
    low: Array | float = number(default=-1.0, infinite=True)  # [] or [A] lower bound
    high: Array | float = number(default=1.0, infinite=True)  # [] or [A] upper bound
    batch: int = size(default=1, least=1)  # samples simulated in parallel

    def init(self, actions: Array) -> SamplingState:
        """Return the state before the first generation, with mean `actions` [T, A].

        Raises:
            ValueError: if a value is out of its range, or there are more elites than samples.
        """
        ranges.check("plan", self)
        if self.elites > self.population:
            raise ValueError(
                f"CEM: {self.elites} elites of {self.population}; take 2 or more, up to all"
            )
        return _init(actions, self.sigma)

    def update(self, loss: Loss, state: SamplingState, key: Array) -> SamplingState:
        """Return the state after one generation."""
        x = _sample_actions(self, state, key)
        f = _losses(loss, x, self.batch)
        elite = x[jnp.argsort(f)[: self.elites]]
        blend = lambda old, new: self.keep * old + (1 - self.keep) * new
        actions = blend(state.actions, jnp.mean(elite, 0))
        return _next_state(state, x, f, actions, blend(state.sigma, jnp.std(elite, 0)))


@pytree
class MPPI:
    """Planner that moves its mean to the weighted average of its samples.

    >>> from jaxgpu.rl import plan
    >>> bowl = lambda actions: jnp.sum((actions - 0.5) ** 2)
    >>> found = plan.plan(bowl, jnp.zeros((3, 1)), MPPI(), 1024, key=jax.random.key(0))
    >>> bool(found.loss < 0.05)
    True
    """

    population: int = size(default=32, least=2)  # N, samples per update
    sigma: Array | float = number(default=0.5, above=0)  # [] initial standard deviation
    temperature: Array | float = number(
        default=0.3, above=0
    )  # [] in standard deviations of the losses
    decay: Array | float = number(default=0.98, above=0, most=1)  # [] factor of sigma per update
    correlation: Array | float = number(default=0.7, least=0, below=1)  # [] r of the noise
    low: Array | float = number(default=-1.0, infinite=True)  # [] or [A] lower bound
    high: Array | float = number(default=1.0, infinite=True)  # [] or [A] upper bound
    batch: int = size(default=1, least=1)  # samples simulated in parallel

    def init(self, actions: Array) -> SamplingState:
        """Return the state before the first update, with mean `actions` [T, A].

        Raises:
            ValueError: if a value is out of its range.
        """
        ranges.check("plan", self)
        return _init(actions, self.sigma)

    def update(self, loss: Loss, state: SamplingState, key: Array) -> SamplingState:
        """Return the state after one update of the mean."""
        x = _sample_actions(self, state, key)
        f = _losses(loss, x, self.batch)
        finite = jnp.isfinite(f)
        scale = jnp.std(f, where=finite)
        scale = jnp.where(scale > 0, scale, 1)
        weight = jax.nn.softmax(jnp.where(finite, -f / (self.temperature * scale), -jnp.inf))
        weight = jnp.where(jnp.any(finite), weight, 1 / self.population)
        actions = jnp.sum(weight[:, None, None] * x, 0)
        return _next_state(state, x, f, actions, self.decay * state.sigma)


def _init(actions: Array, sigma: Array | float) -> SamplingState:
    spread = jnp.zeros_like(actions) + sigma
    return SamplingState(actions, spread, BestPlan.empty(actions), jnp.int32(0))


def _sample_actions(spec: CEM | MPPI, state: SamplingState, key: Array) -> Array:
    """Return samples [N, T, A] clipped to the bounds; the first one is the mean."""
    noise = jax.random.normal(key, (spec.population, *state.actions.shape), state.actions.dtype)
    r = jnp.asarray(spec.correlation, noise.dtype)

    def mix(e: Array, n: Array) -> tuple[Array, Array]:
        e = r * e + jnp.sqrt(1 - r * r) * n
        return e, e

    first = noise[:, 0]
    _, rest = jax.lax.scan(mix, first, jnp.moveaxis(noise[:, 1:], 1, 0))
    e = jnp.concatenate([first[:, None], jnp.moveaxis(rest, 0, 1)], 1).at[0].set(0)
    return jnp.clip(state.actions[None] + state.sigma[None] * e, spec.low, spec.high)


def _losses(loss: Loss, x: Array, batch: int) -> Array:
    """Return the loss of each sample [N], infinite where it is NaN."""
    f = jax.lax.map(loss, x, batch_size=batch if batch > 1 else None)
    return jnp.where(jnp.isnan(f), jnp.inf, f)


def _next_state(
    state: SamplingState, x: Array, f: Array, actions: Array, sigma: Array
) -> SamplingState:
    least = jnp.argmin(f)
    best = state.best.update(x[least], f[least])
    return SamplingState(actions, sigma, best, state.evaluations + jnp.int32(x.shape[0]))
