"""IPOP- and BIPOP-CMA-ES: restarts with larger and smaller populations, in one compiled loop.

Auger & Hansen (2005), doi:10.1109/CEC.2005.1554902, and Hansen (2009),
doi:10.1145/1570256.1570333. `ask` always gives one batch, the smallest population; a generation of
a larger one is gathered over several batches, so that no candidate is evaluated in vain.

Departures: a later run also ends when the best value of all lies further below it than it came
down over the generations that are looked back; populations are whole multiples of the batch; a full
set of doublings is followed by runs of the largest population; medians stagnate over 120 + 30 D / N
generations, not over a fifth of the run where that is more; the mean counts as stuck when three
deviations leave it as it is, not 0.1 or 0.2, which in float32 would end runs on ill-conditioned
functions before their last digits.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.pytree import number, pytree, size, static

from ..problem import Box, Problem
from ..protocol import ask, init, tell
from . import bounds
from .adaptation import rates
from .cma import Shape, cloud, draw, fresh, update
from .ranking import Best, about_middle, better, nothing, start, utilities, width


@pytree
class Restarts:
    """What to run: BIPOP-CMA-ES, or IPOP-CMA-ES with `small_runs=False`."""

    batch: int = size(least=4)  # N of the first run and of every `ask`
    doublings: int = size(default=9, least=0)  # the largest population is batch 2^doublings
    small_runs: bool = static(default=True)
    # [] first step size, in widths of the box
    sigma: Array | float = number(default=0.2, above=0, unit="widths of the box", one=True)
    # [] share of the box, about its middle, that the means start in
    start: Array | float = number(default=0.8, least=0, most=1, one=True)
    # [] a run ends when the best values differ by no more
    tolerance: Array | float = number(default=1e-12, least=0, one=True)

    def __post_init__(self) -> None:
        whole = isinstance(self.batch, int) and isinstance(self.doublings, int)
        if whole and (self.batch < 4 or self.doublings < 0):
            raise ValueError(
                f"Restarts: batch={self.batch}, doublings={self.doublings}; need at least 4 and 0"
            )


@pytree
class Schedule:
    """Which run this is, and what the two kinds of runs have spent."""

    population: Array  # [] of this run
    large: Array  # [] population of the last large run
    sigma: Array  # [] first step size of this run
    is_small: Array  # [] bool
    used: Array  # [] evaluations of this run
    spent: Array  # [2] evaluations of the large and the small runs before this one
    allowed: Array  # [] evaluations that this run may use
    runs: Array  # [] restarts so far


@pytree
class State:
    """Where the run is. L is the largest population, H the generations that are looked back."""

    shape: Shape
    x: Array  # [L, D] free candidates of the generation so far
    f: Array  # [L, 1] NaN where there is none yet
    violation: Array  # [L]
    filled: Array  # [] how many there are
    recent: Array  # [2, H] best and median value of each of the last generations, newest first
    schedule: Schedule
    best: Best
    box: Box
    key: Array  # [] of the restarts
    side: Array  # [] of the candidates at the sides


@init.register
def _(spec: Restarts, key: Array, problem: Problem) -> State:
    first, rest = jax.random.split(key)
    mean = bounds.free(problem.box, start(spec, first, problem, spec.start))
    d, dtype = mean.shape[0], mean.dtype
    largest = spec.batch << spec.doublings
    zero, batch = jnp.int32(0), jnp.int32(spec.batch)
    most = jnp.int32(jnp.iinfo(jnp.int32).max)
    sigma = jnp.asarray(spec.sigma, dtype)
    schedule = Schedule(
        batch, batch, sigma, jnp.bool_(False), zero, jnp.zeros(2, jnp.int32), most, zero
    )
    return State(
        fresh(mean, sigma),
        jnp.zeros((largest, d), dtype),
        jnp.full((largest, 1), jnp.nan, dtype),
        jnp.full(largest, jnp.inf, dtype),
        zero,
        jnp.full((2, 120 + 30 * d // spec.batch), jnp.inf, dtype),
        schedule,
        nothing(problem),
        problem.box,
        rest,
        bounds.first_key(key),
    )


@ask.register
def _(spec: Restarts, state: State, key: Array) -> Array:
    box, draws = state.box, draw(state.shape, state.box, spec.batch)
    return bounds.candidates(box, state.side, key, cloud(state.shape, box), draws)


@tell.register
def _(spec: Restarts, state: State, x: Array, f: Array, violation: Array) -> State:
    at, box = state.filled, state.box
    draws = draw(state.shape, box, spec.batch)
    y = bounds.samples(box, state.side, x, cloud(state.shape, box), draws)
    schedule = replace(state.schedule, used=state.schedule.used + spec.batch)
    state = replace(
        state,
        x=lax.dynamic_update_slice_in_dim(state.x, y, at, 0),
        f=lax.dynamic_update_slice_in_dim(state.f, f, at, 0),
        violation=lax.dynamic_update_slice_in_dim(state.violation, violation, at, 0),
        filled=at + spec.batch,
        best=better(state.best, x, f, violation),
        schedule=schedule,
        side=bounds.next_key(state.side),
    )
    full = state.filled >= schedule.population
    state = lax.cond(full, _generation, lambda s: s, state)
    over = full & _over(spec, state)
    return lax.cond(over, lambda s: _restart(spec, s), lambda s: s, state)


def _generation(state: State) -> State:
    """Learn from the candidates that have been gathered, and forget them."""
    size, d = state.x.shape
    learn = rates(size, state.schedule.population, d, state.x.dtype)
    weight = utilities(state.f, state.violation, learn.weights)
    positive = utilities(state.f, state.violation, jnp.maximum(learn.weights, 0))
    shape = update(state.shape, state.box, learn, state.x, weight, positive)
    f = jnp.where(state.violation[:, None] > 0, jnp.nan, state.f)  # of feasible candidates
    values = jnp.stack([jnp.nanmin(f), jnp.nanmedian(f)])
    return replace(
        state,
        shape=shape,
        f=jnp.full_like(state.f, jnp.nan),
        violation=jnp.full_like(state.violation, jnp.inf),
        filled=jnp.int32(0),
        recent=jnp.roll(state.recent, 1, axis=1).at[:, 0].set(values),
    )


def _over(spec: Restarts, state: State) -> Array:
    """Whether this run can gain no more: the rules of Hansen (2009), section 2. [] bool."""
    s, run = state.shape, state.schedule
    d = s.mean.shape[0]
    spread = s.sigma * width(state.box) * jnp.sqrt(jnp.diagonal(s.covariance))
    back = 10 + 30 * d // run.population
    best = state.recent[0]
    recent = jnp.where(jnp.arange(best.shape[0], dtype=jnp.int32) < back, best, best[0])
    gain = jnp.max(recent) - jnp.min(recent)
    flat = gain <= spec.tolerance
    # a steady run gains less from here on than it has of late: that leaves it above an earlier one
    hopeless = (run.runs > 0) & (jnp.min(recent) - state.best.f > gain)
    first = run.sigma * width(state.box)
    small = jnp.all(
        jnp.maximum(spread, s.sigma * width(state.box) * jnp.abs(s.path)) < 1e-12 * first
    )
    least, most = jnp.min(s.lengths), jnp.max(s.lengths)
    singular = most >= 1e7 * least
    # three deviations: no candidate differs, where the authors' 0.2 leaves float32 digits unused
    stuck = jnp.any(s.mean + 3 * spread == s.mean)
    axis = 3 * s.sigma * s.lengths[:, None] * s.axes.T * width(state.box)[None]
    stuck |= jnp.any(jnp.all(s.mean[None] + axis == s.mean[None], axis=1))
    wild = s.sigma * most > 1e4 * run.sigma
    limit = 100 + 50 * (d + 3) ** 2 / jnp.sqrt(run.population.astype(s.mean.dtype))
    old = s.generation.astype(s.mean.dtype) > limit
    over = ((flat | hopeless) & (s.generation >= back)) | small | singular | stuck | wild | old
    return over | _stagnates(state) | (run.used >= run.allowed)


def _stagnates(state: State) -> Array:
    """Neither the best nor the median values of late are lower than those of a while ago. [] bool.

    Compared are the medians of the newest and of the oldest three tenths of the generations that
    are looked back.
    """
    d = state.shape.mean.shape[0]
    back = 120 + 30 * d // state.schedule.population
    age = jnp.arange(state.recent.shape[1], dtype=jnp.int32)

    def middle(mask: Array) -> Array:
        return jnp.nanmedian(jnp.where(mask[None], state.recent, jnp.nan), axis=1)

    late, early = middle(10 * age < 3 * back), middle((10 * age >= 7 * back) & (age < back))
    return jnp.all(late >= early) & (state.shape.generation >= back)


def _restart(spec: Restarts, state: State) -> State:
    """The next run: large when the large runs have spent less than the small ones."""
    run = state.schedule
    key, k_mean, k_size, k_sigma = jax.random.split(state.key, 4)
    which = jnp.where(run.is_small, 1, 0)
    spent = run.spent.at[which].add(jnp.where(run.runs > 0, run.used, 0))
    small = spec.small_runs & (run.runs > 0) & (spent[1] < spent[0])
    large = jnp.minimum(2 * run.large, spec.batch << spec.doublings)
    large = jnp.where(small, run.large, large)
    dtype = state.x.dtype
    share = (0.5 * (large // spec.batch).astype(dtype)) ** (
        jax.random.uniform(k_size, (), dtype) ** 2
    )
    few = spec.batch * jnp.maximum(1, jnp.floor(share)).astype(jnp.int32)
    less = 10 ** (-2 * jax.random.uniform(k_sigma, (), dtype))
    sigma = jnp.asarray(spec.sigma, dtype) * jnp.where(small, less, 1)
    most = jnp.int32(jnp.iinfo(jnp.int32).max)
    last = jnp.where(run.is_small, run.allowed * 2, run.used)
    schedule = Schedule(
        jnp.where(small, few, large),
        large,
        sigma,
        small,
        jnp.int32(0),
        spent,
        jnp.where(small, last // 2, most),
        run.runs + 1,
    )
    mean = bounds.free(state.box, about_middle(k_mean, state.box, spec.start))
    return replace(state, shape=fresh(mean, sigma), schedule=schedule, key=key)
