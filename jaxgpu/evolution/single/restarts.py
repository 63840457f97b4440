"""IPOP- and BIPOP-CMA-ES: restarts with larger and smaller populations, in one compiled loop.

Auger & Hansen (2005), doi:10.1109/CEC.2005.1554902, and Hansen (2009), doi:10.1145/1570256.1570333.
`ask` always returns one batch, the smallest population. A generation of a larger population
consists of several batches, so no evaluation is wasted.

Differences: a later run also ends if it is above the best value of all runs by more than its gain
over the look-back window. Populations are whole multiples of the batch. A full set of doublings is
followed by runs of the largest population. Medians stagnate over 120 + 30 D / N generations, not
over a fifth of the run if that is more. The mean counts as stuck if three deviations do not change
it, not 0.1 or 0.2, which in float32 would end runs on ill-conditioned functions too early.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, size, static

from ..population import key_from
from ..problem import Box, Problem
from ..protocol import Algorithm, check_tell
from . import bounds
from .adaptation import rates
from .cma import SearchShape, distribution, isotropic_shape, sampler, update
from .ranking import Best, check_single, init_best, sample_center, update_best, utilities, width

UNLIMITED = 2**31 - 1  # allowed evaluations of a run that ends by the other rules


@pytree
class Restarts(Algorithm["State"]):
    """BIPOP-CMA-ES (Hansen 2009), or IPOP-CMA-ES with `small_runs=False`.

    >>> import jax
    >>> from jaxgpu.evolution import Problem, box, evolve
    >>> valley = Problem(box(-5.0, 5.0, 2), lambda x: jnp.sum((x - 1) ** 2))
    >>> state = jax.jit(evolve)(Restarts(8, doublings=2), valley, jax.random.key(0), 60)
    >>> bool(state.best.f < 1e-3)
    True
    """

    batch_size: int = size(least=4)  # N of the first run and of every `ask`
    doublings: int = size(default=9, least=0)  # the largest population is batch_size 2^doublings
    # BIPOP alternates runs with small and large populations; IPOP has only large ones
    small_runs: bool = static(default=True)
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    # [] fraction of the box, about its center, from which first means are sampled
    start: Array | float = number(default=0.8, least=0, most=1, one=True)
    # [] a run ends when its recent best values differ by at most this
    tolerance: Array | float = number(default=1e-12, least=0, one=True)

    def __post_init__(self) -> None:
        whole = isinstance(self.batch_size, int) and isinstance(self.doublings, int)
        if whole and (self.batch_size < 4 or self.doublings < 0):
            raise ValueError(
                f"Restarts: batch_size={self.batch_size}, doublings={self.doublings}; need at "
                "least 4 and 0"
            )

    def init(self, key: Array, problem: Problem) -> "State":
        """Return the state of the first run, with the smallest population."""
        problem = check_single(self, key, problem)
        mean = bounds.from_box(problem.box, sample_center(key, problem.box, self.start))
        d, dtype = mean.shape[0], mean.dtype
        largest, sigma = self.batch_size << self.doublings, jnp.asarray(self.sigma, dtype)
        schedule = Schedule(
            population=jnp.int32(self.batch_size),
            large=jnp.int32(self.batch_size),
            sigma=sigma,
            is_small=jnp.bool_(False),
            used=jnp.int32(0),
            spent=jnp.zeros(2, jnp.int32),
            allowed=jnp.int32(UNLIMITED),
            runs=jnp.int32(0),
        )
        return State(
            shape=isotropic_shape(mean, sigma),
            x=jnp.zeros((largest, d), dtype),
            f=jnp.full((largest, 1), jnp.nan, dtype),
            violation=jnp.full(largest, jnp.inf, dtype),
            filled=jnp.int32(0),
            recent=jnp.full((2, 120 + 30 * d // self.batch_size), jnp.inf, dtype),
            schedule=schedule,
            best=init_best(problem),
            box=problem.box,
        )

    def ask(self, state: "State", key: Array) -> Array:
        """Return the next batch of samples of the distribution, inside the box."""
        shape, box = state.shape, state.box
        own, draws = _batch_key(state), sampler(shape, box, self.batch_size)
        return bounds.candidates(box, own, key, distribution(shape, box), draws)

    def tell(self, state: "State", x: Array, f: Array, violation: Array | None = None) -> "State":
        """Store the batch; update the distribution after a generation, and restart after a run."""
        x, f, violation = check_tell(self, state, x, f, violation)
        at, box = state.filled, state.box
        draws = sampler(state.shape, box, self.batch_size)
        y = bounds.samples(box, _batch_key(state), x, distribution(state.shape, box), draws)
        schedule = replace(state.schedule, used=state.schedule.used + self.batch_size)
        state = replace(
            state,
            x=lax.dynamic_update_slice_in_dim(state.x, y, at, 0),
            f=lax.dynamic_update_slice_in_dim(state.f, f, at, 0),
            violation=lax.dynamic_update_slice_in_dim(state.violation, violation, at, 0),
            filled=at + self.batch_size,
            best=update_best(state.best, x, f, violation),
            schedule=schedule,
        )
        full = state.filled >= schedule.population
        state = lax.cond(full, _complete_generation, lambda s: s, state)
        over = full & _is_over(self, state)
        key = jax.random.fold_in(key_from(x), schedule.runs)
        return lax.cond(over, lambda s: _restart(self, s, key), lambda s: s, state)


@pytree
class Schedule:
    """Settings of the current run, and evaluations spent by the large and the small runs."""

    population: Array  # [] population size of this run
    large: Array  # [] population of the last large run
    sigma: Array  # [] first step size of this run
    is_small: Array  # [] bool: a run with a small population
    used: Array  # [] evaluations of this run
    spent: Array  # [2] evaluations of the large and the small runs before this one
    allowed: Array  # [] evaluations that this run may use
    runs: Array  # [] number of restarts so far


@pytree
class State:
    """State of a run with restarts. L is the largest population, H the look-back window."""

    shape: SearchShape
    x: Array  # [L, D] unconstrained candidates of the generation so far
    f: Array  # [L, 1] objectives, NaN for empty slots
    violation: Array  # [L] violations
    filled: Array  # [] number of candidates so far
    recent: Array  # [2, H] best and median value of each of the last generations, newest first
    schedule: Schedule
    best: Best
    box: Box


def _batch_key(state: State) -> Array:
    """Return a different key for each batch of a generation; the batches share a mean."""
    return bounds.state_key(state.shape.mean, state.schedule.used)


def _complete_generation(state: State) -> State:
    """Update the distribution by the stored candidates, and clear them."""
    size, d = state.x.shape
    learn = rates(size, state.schedule.population, d, state.x.dtype)
    weight = utilities(state.f, state.violation, learn.weights)
    positive = utilities(state.f, state.violation, jnp.maximum(learn.weights, 0))
    shape = update(state.shape, state.box, learn, state.x, weight, positive)
    f = jnp.where(state.violation[:, None] > 0, jnp.nan, state.f)  # only feasible candidates count
    values = jnp.stack([jnp.nanmin(f), jnp.nanmedian(f)])
    return replace(
        state,
        shape=shape,
        f=jnp.full_like(state.f, jnp.nan),
        violation=jnp.full_like(state.violation, jnp.inf),
        filled=jnp.int32(0),
        recent=jnp.roll(state.recent, 1, axis=1).at[:, 0].set(values),
    )


def _is_over(spec: Restarts, state: State) -> Array:
    """Return whether the run must end, by the rules of Hansen (2009), section 2. [] bool."""
    s, run = state.shape, state.schedule
    d = s.mean.shape[0]
    spread = s.sigma * width(state.box) * jnp.sqrt(jnp.diagonal(s.covariance))
    back = 10 + 30 * d // run.population
    best = state.recent[0]
    recent = jnp.where(jnp.arange(best.shape[0], dtype=jnp.int32) < back, best, best[0])
    gain = jnp.max(recent) - jnp.min(recent)
    flat = gain <= spec.tolerance
    # the future gain of a steady run is below its recent gain, so it stays above an earlier run
    hopeless = (run.runs > 0) & (jnp.min(recent) - state.best.f > gain)
    first = run.sigma * width(state.box)
    small = jnp.all(
        jnp.maximum(spread, s.sigma * width(state.box) * jnp.abs(s.path)) < 1e-12 * first
    )
    least, most = jnp.min(s.lengths), jnp.max(s.lengths)
    singular = most >= 1e7 * least
    # at three deviations no candidate differs; the authors' 0.2 leaves float32 digits unused
    stuck = jnp.any(s.mean + 3 * spread == s.mean)
    axis = 3 * s.sigma * s.lengths[:, None] * s.axes.T * width(state.box)[None]
    stuck |= jnp.any(jnp.all(s.mean[None] + axis == s.mean[None], axis=1))
    wild = s.sigma * most > 1e4 * run.sigma
    limit = 100 + 50 * (d + 3) ** 2 / jnp.sqrt(run.population.astype(s.mean.dtype))
    old = s.generation.astype(s.mean.dtype) > limit
    over = ((flat | hopeless) & (s.generation >= back)) | small | singular | stuck | wild | old
    return over | _stagnates(state) | (run.used >= run.allowed)


def _stagnates(state: State) -> Array:
    """Return whether neither the best nor the median values have recently decreased. [] bool.

    It compares the medians of the newest and of the oldest three tenths of the look-back window.
    """
    d = state.shape.mean.shape[0]
    back = 120 + 30 * d // state.schedule.population
    age = jnp.arange(state.recent.shape[1], dtype=jnp.int32)

    def masked_median(mask: Array) -> Array:
        return jnp.nanmedian(jnp.where(mask[None], state.recent, jnp.nan), axis=1)

    late, early = (
        masked_median(10 * age < 3 * back),
        masked_median((10 * age >= 7 * back) & (age < back)),
    )
    return jnp.all(late >= early) & (state.shape.generation >= back)


def _restart(spec: Restarts, state: State, key: Array) -> State:
    """Start the next run: a small one if the small runs have spent less than the large ones."""
    run = state.schedule
    k_mean, k_size, k_sigma = jax.random.split(key, 3)
    which = jnp.where(run.is_small, 1, 0)
    spent = run.spent.at[which].add(jnp.where(run.runs > 0, run.used, 0))
    small = spec.small_runs & (run.runs > 0) & (spent[1] < spent[0])
    large = jnp.minimum(2 * run.large, spec.batch_size << spec.doublings)
    large = jnp.where(small, run.large, large)
    dtype = state.x.dtype
    share = (0.5 * (large // spec.batch_size).astype(dtype)) ** (
        jax.random.uniform(k_size, (), dtype) ** 2
    )
    few = spec.batch_size * jnp.maximum(1, jnp.floor(share)).astype(jnp.int32)
    less = 10 ** (-2 * jax.random.uniform(k_sigma, (), dtype))
    sigma = jnp.asarray(spec.sigma, dtype) * jnp.where(small, less, 1)
    last = jnp.where(run.is_small, run.allowed * 2, run.used)
    schedule = Schedule(
        population=jnp.where(small, few, large),
        large=large,
        sigma=sigma,
        is_small=small,
        used=jnp.int32(0),
        spent=spent,
        allowed=jnp.where(small, last // 2, jnp.int32(UNLIMITED)),
        runs=run.runs + 1,
    )
    mean = bounds.from_box(state.box, sample_center(k_mean, state.box, spec.start))
    return replace(state, shape=isotropic_shape(mean, sigma), schedule=schedule)
