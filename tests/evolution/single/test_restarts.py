"""BIPOP's budget: large runs double, small ones stay below half, and the poorer regime goes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.evolution import protocol, single
from jaxgpu.evolution.problem import Problem, box


@pytest.mark.slow
@pytest.mark.parametrize("small_runs", [True, False])
def test_the_schedule_is_that_of_hansen(small_runs):
    # equal values end every run after 10 + 30 D / N generations, and never before
    flat = Problem(box(-1.0, 1.0, 2), lambda x: jnp.zeros(1, x.dtype))
    spec = single.Restarts(6, 4, small_runs=small_runs)
    look = lambda s: (s.schedule.runs, s.schedule, s.filled)
    history = protocol.run(spec, flat, jax.random.key(0), 3000, measure=look).history
    runs, schedule, filled = history
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
    if not small_runs:
        assert not small.any()
        return
    assert small.any()
    np.testing.assert_array_equal(small[2:], spent[2:, 1] < spent[2:, 0])
    assert (population[small] <= np.maximum(large[small] / 2, 6)).all()
    assert (sigma[small] <= 0.2 + 1e-6).all() and (sigma[small] >= 0.002 - 1e-6).all()
    # a small run may use half of what the last large one used
    for i in np.flatnonzero(small):
        last = np.flatnonzero(~small[:i])[-1]
        used = schedule.used[first[last + 1] - 1] + 6  # the last batch starts the next run
        assert allowed[i] == used // 2
