"""Running moments against those of all the data at once."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.rl.learners import normaliser


def test_moments_are_those_of_all_data(x64):
    rng = np.random.default_rng(0)
    parts = [rng.normal(3, 2, (n, 4, 5)) for n in (1, 7, 100)]
    seen = normaliser.init(jnp.zeros(5))
    for part in parts:
        seen = normaliser.update(seen, jnp.asarray(part))
    rows = np.concatenate([part.reshape(-1, 5) for part in parts])
    np.testing.assert_allclose(seen.mean, rows.mean(0), rtol=1e-12)
    np.testing.assert_allclose(seen.square / seen.count, rows.var(0), rtol=1e-12)
    scaled = normaliser.apply(seen, jnp.asarray(rows))
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(0), 1, atol=1e-7)


def test_nothing_seen_changes_nothing_and_outliers_are_cut():
    fresh = normaliser.init(jnp.zeros(2))
    np.testing.assert_array_equal(normaliser.apply(fresh, jnp.full((3, 2), 7.0)), 7)
    seen = normaliser.update(fresh, jnp.array([[0.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(normaliser.apply(seen, jnp.array([1e9, -1e9])), [10, -10])


def test_observations_may_be_dictionaries():
    seen = normaliser.init({"a": jnp.zeros(2), "b": jnp.zeros(())})
    seen = normaliser.update(seen, {"a": jnp.ones((3, 2)), "b": jnp.ones(3)})
    assert (
        seen.count == 3 and normaliser.apply(seen, {"a": jnp.ones(2), "b": jnp.ones(())})["b"] == 0
    )


def test_rewards_are_divided_by_the_deviation_of_their_discounted_sums(x64):
    """Against sums written out, over two rollouts and the ends of episodes."""
    rng, discount = np.random.default_rng(1), 0.9
    reward, over = rng.normal(2, 3, (10, 4)), rng.random((10, 4)) < 0.2
    sums = np.zeros((10, 4))
    for t in range(10):
        for b in range(4):
            begin = max((s + 1 for s in range(t) if over[s, b]), default=0)
            sums[t, b] = sum(discount ** (t - s) * reward[s, b] for s in range(begin, t + 1))
    returns = normaliser.no_returns(4)
    for part in (slice(0, 5), slice(5, 10)):
        returns, got = normaliser.scale(returns, *map(jnp.asarray, (reward[part], over[part])), 0.9)
        want = reward[part] / np.std(sums[: part.stop])
        np.testing.assert_allclose(got, want, rtol=1e-7)


@pytest.mark.slow
def test_conforms():
    seen = normaliser.init(jnp.zeros(2))
    data = jax.random.normal(jax.random.key(0), (6, 2))
    conformance.check(normaliser.update, seen, data, differentiable=(1,), batched=(1,))
