"""BIPOP's budget: large runs double, small ones stay below half, and the cheaper regime is next."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import protocol, single
from jaxgpu.evolution.problem import Problem, box
from jaxgpu.evolution.single import restarts


def start(spec, dimension=4):
    """Return the initial state, computed by one program."""
    problem = Problem(box(-1.0, 1.0, dimension), lambda x: x[:1])
    return jax.jit(lambda: spec.init(jax.random.key(0), problem))()


@pytest.mark.slow
def test_the_schedule_is_that_of_hansen():
    # Equal values end every run after 10 + 30 D / N generations, and never before.
    flat = Problem(box(-1.0, 1.0, 2), lambda x: jnp.zeros(1, x.dtype))
    spec = single.Restarts(6, 4)

    def step_once(state, key):
        after = protocol.step(spec, flat, state, key)
        return after, (state.schedule, state.filled)

    run = jax.jit(lambda keys: jax.lax.scan(step_once, spec.init(keys[0], flat), keys)[1])
    schedule, filled = jax.device_get(run(jax.random.split(jax.random.key(0), 3000)))
    runs = schedule.runs
    first = np.flatnonzero(np.diff(runs, prepend=-1))
    population, large = schedule.population[first], schedule.large[first]
    small, sigma = schedule.is_small[first], schedule.sigma[first]
    spent, allowed = schedule.spent[first], schedule.allowed[first]
    assert len(first) > 8 and population[0] == large[0] == 6 and not small[0]
    assert (filled < schedule.population).all() and (population % 6 == 0).all()
    grown = np.flatnonzero(~small[1:]) + 1
    np.testing.assert_array_equal(large[grown], np.minimum(2 * large[grown - 1], 96))
    np.testing.assert_array_equal(population[~small], large[~small])
    np.testing.assert_allclose(sigma[~small], 0.2, rtol=1e-6)
    assert small.any()
    np.testing.assert_array_equal(small[2:], spent[2:, 1] < spent[2:, 0])
    assert (population[small] <= np.maximum(large[small] / 2, 6)).all()
    assert (sigma[small] <= 0.2 + 1e-6).all() and (sigma[small] >= 0.002 - 1e-6).all()
    # A small run may use half of the evaluations of the last large one.
    for i in np.flatnonzero(small):
        last = np.flatnonzero(~small[:i])[-1]
        used = schedule.used[first[last + 1] - 1] + 6  # the last batch starts the next run
        assert allowed[i] == used // 2


IPOP = single.Restarts(6, 4, small_runs=False)


def test_the_regime_that_has_spent_less_gets_the_next_run():
    """Small runs keep the large size, and large runs double it (Hansen, 2009, section 3.2)."""
    spec = single.Restarts(6, 4)
    state = start(spec, 2)
    restart = jax.jit(lambda state, key: restarts._restart(spec, state, key).schedule)
    large_only = jax.jit(lambda state, key: restarts._restart(IPOP, state, key).schedule)

    def next_run(key, is_small, used, spent, restart=restart):
        run = replace(state.schedule, runs=jnp.int32(3), large=jnp.int32(24))
        run = replace(run, is_small=jnp.bool_(is_small), used=jnp.int32(used))
        run = replace(run, allowed=jnp.int32(70), spent=jnp.int32(spent))
        return restart(replace(state, schedule=run), jax.random.key(key))

    for key in range(5):
        small = next_run(key, False, 100, [0, 99])
        assert small.is_small and small.large == 24 and small.allowed == 50 and small.runs == 4
        assert small.population in (6, 12) and 0.002 <= small.sigma < 0.2
        large = next_run(key, True, 31, [100, 69])
        assert not large.is_small and large.large == large.population == 48
        assert abs(large.sigma - 0.2) < 1e-6
        np.testing.assert_array_equal(large.spent, [100, 100])
    # Without small runs every next run is large, regardless of the evaluations.
    large = next_run(0, False, 100, [0, 99], large_only)
    assert not large.is_small and large.large == large.population == 48


def test_small_runs_begin_with_steps_that_are_shorter_by_up_to_a_hundred():
    """Check Hansen (2009), section 3.2: 10^(-2 u) of the first step size, u uniform in 0 ... 1."""
    spec = single.Restarts(6, 4)
    state = start(spec, 2)
    run = replace(state.schedule, runs=jnp.int32(3), spent=jnp.int32([100, 0]))
    begin = lambda key: restarts._restart(spec, replace(state, schedule=run), key).schedule
    begun = jax.jit(jax.vmap(begin))(jax.random.split(jax.random.key(0), 500))
    power = np.log10(np.asarray(begun.sigma) / 0.2)
    assert begun.is_small.all() and -2 <= power.min() < -1.95 and -0.05 < power.max() <= 0
    assert abs(power.mean() + 1) < 5 * 2 / (12 * 500) ** 0.5


def test_a_generation_is_learnt_from_by_logarithms_of_the_rank(monkeypatch):
    """The better half updates the mean, all the covariance, the worse with negative weights."""
    spec, f = single.Restarts(6, 1), np.array([3.0, 0.0, 5.0, 1.0, 4.0, 2.0], np.float32)
    problem, seen = Problem(box(-1.0, 1.0, 4), lambda x: x[:1]), []
    monkeypatch.setattr(restarts, "update", lambda *given: seen.append(given) or given[0])

    @jax.jit
    def learn_once(key):
        state = spec.init(key, problem)
        known = {"f": state.f.at[:6, 0].set(f), "violation": state.violation.at[:6].set(0)}
        after = restarts._complete_generation(replace(state, filled=jnp.int32(6), **known))
        return seen[0][-2:], after.recent[:, 0], after.filled

    (weight, positive), recent, filled = learn_once(jax.random.key(0))
    share, order = np.log(3.5) - np.log([1, 2, 3]), np.argsort(f)
    np.testing.assert_allclose(positive[order[:3]], share / share.sum(), rtol=1e-5)
    np.testing.assert_array_equal(weight[order[:3]], positive[order[:3]])
    assert not positive[order[3:]].any() and not positive[6:].any()
    assert (weight[order[4:]] < 0).all()
    np.testing.assert_allclose(recent, [0, 2.5])
    assert filled == 0


def test_a_run_stagnates_when_neither_best_nor_median_falls():
    # Hansen (2009), section 2: medians of the first and the last three tenths, newest first here.
    spec, rng = single.Restarts(6, 2), np.random.default_rng(0)
    state = start(spec)
    stagnates, verdicts = jax.jit(restarts._stagnates), []
    for population in (6, 24):
        back = 120 + 30 * 4 // population
        run = replace(state.schedule, population=jnp.int32(population))
        for slope in (-0.02, 0.0, 0.001, 0.02):
            recent = slope * np.arange(140.0) + rng.normal(size=(2, 140))
            old = recent[:, [i for i in range(back) if i >= 0.7 * back]]
            new = recent[:, [i for i in range(back) if i < 0.3 * back]]
            want = (np.median(new, axis=1) >= np.median(old, axis=1)).all()
            for generation in (back - 1, back):
                shape = replace(state.shape, generation=jnp.int32(generation))
                now = replace(state, recent=jnp.float32(recent), schedule=run, shape=shape)
                assert stagnates(now) == (want and generation == back)
            verdicts.append(want)
    assert 0 < sum(verdicts) < len(verdicts)


def test_a_later_run_ends_when_it_cannot_reach_the_best():
    spec = single.Restarts(6, 2)
    state = start(spec)
    over, back = jax.jit(lambda state: restarts._is_over(spec, state)), 10 + 30 * 4 // 6
    # The history is newest first and tends to 3.
    halves = jnp.float32(3 + 2.0 ** np.minimum(np.arange(140), 99) * np.ones((2, 1)))

    def ends(best, runs=1, generation=back, newest=4.0, recent=halves):
        shape = replace(state.shape, generation=jnp.int32(generation))
        run = replace(state.schedule, runs=jnp.int32(runs))
        recent = recent.at[:, 0].set(newest)
        best = replace(state.best, f=jnp.float32(best), violation=jnp.float32(0))
        return bool(over(replace(state, shape=shape, schedule=run, recent=recent, best=best)))

    gain = 2.0 ** (back - 1) - 1
    assert ends(4 - 1.01 * gain) and not ends(4 - 0.99 * gain)
    assert not ends(-2 * gain, runs=0) and not ends(-2 * gain, generation=back - 1)
    assert not ends(-2 * gain, newest=jnp.nan)  # no feasible candidate


def test_a_run_ends_by_each_of_the_rules_and_not_before():
    """Check Hansen (2009), section 2: TolX, TolXUp, ConditionCov, MaxIter, no effect, budget."""
    spec = single.Restarts(6, 2)
    state = start(spec)
    # The newest value is first and lowest: the history neither stagnates nor is flat.
    rising = jnp.float32(np.arange(140.0) * np.ones((2, 1)))
    state = replace(state, recent=rising)
    over, first = jax.jit(lambda state: restarts._is_over(spec, state)), state.schedule.sigma

    def ends(mean=0.0, sigma=1.0, lengths=(1.0,) * 4, path=0.0, generation=1, used=0):
        shape = replace(
            state.shape,
            mean=jnp.full(4, mean, jnp.float32),
            sigma=jnp.float32(sigma) * first,
            lengths=jnp.array(lengths, jnp.float32),
            path=jnp.full(4, path, jnp.float32),
            generation=jnp.int32(generation),
        )
        run = replace(state.schedule, used=jnp.int32(used), allowed=jnp.int32(50))
        return bool(over(replace(state, shape=shape, schedule=run)))

    assert not ends()
    assert ends(sigma=1010, lengths=(10.0,) * 4) and not ends(sigma=990, lengths=(10.0,) * 4)
    assert ends(sigma=0.9e-12) and not ends(sigma=1.1e-12)
    assert not ends(sigma=0.9e-12, path=2.0)
    max_lengths = lambda most: (1.0, 1.0, 1.0, most)
    assert ends(sigma=1e-4, lengths=max_lengths(1.01e7)) and not ends(
        sigma=1e-4, lengths=max_lengths(0.99e7)
    )
    assert ends(generation=1101) and not ends(generation=1100)  # 100 + 50 7^2 / sqrt(6) = 1100.2
    assert ends(used=50) and not ends(used=49)
    assert ends(mean=0.9, sigma=1e-8) and not ends(mean=0.9, sigma=1e-6)


@pytest.mark.slow
def test_values_of_infeasible_candidates_end_no_run():
    problem = Problem(box(-1.0, 1.0, 4), lambda x: (x[:1], x[0]))
    spec = single.Restarts(6, 0)

    @jax.jit
    def recent(key):
        state = spec.init(key, problem)
        f, violation = -jnp.arange(6.0)[:, None], jnp.float32([0, 0, 0, 1, 1, 1])
        return spec.tell(state, spec.ask(state, key), f, violation).recent[:, 0]

    np.testing.assert_array_equal(recent(jax.random.key(0)), [-2, -1])


@pytest.mark.slow
def test_restarts_reach_the_last_digits_of_an_ellipsoid_in_float32():
    # With the rule of 0.2 deviations for a stuck mean, the runs end at about 1e-7.
    best, weights = np.float32([1.7, -2.3, 0.4, 3.1, -1.2]), np.float32(10 ** np.linspace(0, 6, 5))

    def ellipsoid(x):
        return jnp.sum(weights * (x - best) ** 2, keepdims=True)

    problem, spec = Problem(box(-20.0, 20.0, 5), ellipsoid), single.Restarts(8, 5, sigma=0.05)
    run = lambda key: protocol.evolve(spec, problem, key, 625).best.f
    got = jax.jit(lambda keys: jax.lax.map(run, keys))(jax.random.split(jax.random.key(0), 5))
    assert got.max() <= 1e-8, got
