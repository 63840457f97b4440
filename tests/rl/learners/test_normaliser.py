"""Running moments against those of all data in one batch."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.rl.learners import normalizer


def test_moments_are_those_of_all_data(x64):
    rng = np.random.default_rng(0)
    parts = [rng.normal(3, 2, (n, 4, 5)) for n in (1, 7, 100)]

    @jax.jit
    def normalize(parts, rows):
        seen = normalizer.init(jnp.zeros(5))
        for part in parts:
            seen = normalizer.update(seen, part)
        return seen, normalizer.apply(seen, rows)

    rows = np.concatenate([part.reshape(-1, 5) for part in parts])
    seen, scaled = normalize(parts, rows)
    np.testing.assert_allclose(seen.mean, rows.mean(0), rtol=1e-12)
    np.testing.assert_allclose(seen.square / seen.count, rows.var(0), rtol=1e-12)
    np.testing.assert_allclose(np.mean(scaled, 0), 0, atol=1e-12)
    np.testing.assert_allclose(np.std(scaled, 0), 1, atol=1e-7)


def test_nothing_seen_changes_nothing_and_outliers_are_cut():

    @jax.jit
    def normalize(rows, far):
        fresh = normalizer.init(jnp.zeros(2))
        seen = normalizer.update(fresh, rows)
        return normalizer.apply(fresh, jnp.full((3, 2), 7.0)), normalizer.apply(seen, far)

    same, far = normalize(np.float32([[0, 1], [1, 1]]), np.float32([1e9, -1e9]))
    np.testing.assert_array_equal(same, 7)
    np.testing.assert_array_equal(far, [10, -10])


def test_observations_may_be_dictionaries():
    zeros, ones = np.zeros(2, np.float32), np.ones((3, 2), np.float32)
    seen = normalizer.init({"a": zeros, "b": zeros[0]})
    seen = normalizer.update(seen, {"a": ones, "b": ones[:, 0]})
    assert seen.count == 3
    assert normalizer.apply(seen, {"a": ones[0], "b": ones[0, 0]})["b"] == 0


def test_rewards_are_divided_by_the_deviation_of_their_discounted_sums(x64):
    """Compare with explicit sums, over two rollouts and the ends of episodes."""
    rng, discount = np.random.default_rng(1), 0.9
    reward, over = rng.normal(2, 3, (10, 4)), rng.random((10, 4)) < 0.2
    sums = np.zeros((10, 4))
    for t in range(10):
        for b in range(4):
            begin = max((s + 1 for s in range(t) if over[s, b]), default=0)
            sums[t, b] = sum(discount ** (t - s) * reward[s, b] for s in range(begin, t + 1))
    returns = normalizer.init_returns(4)
    scale = jax.jit(normalizer.scale)
    for part in (slice(0, 5), slice(5, 10)):
        returns, got = scale(returns, reward[part], over[part], 0.9)
        want = reward[part] / np.std(sums[: part.stop])
        np.testing.assert_allclose(got, want, rtol=1e-7)


def test_conforms():
    seen = normalizer.init(jnp.zeros(2))
    data = jax.random.normal(jax.random.key(0), (6, 2))
    conformance.check(normalizer.update, seen, data, differentiable=(1,), batched=(1,))
