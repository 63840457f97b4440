"""Mixtures: likelihoods never fall, planted clusters are found, many dimensions cause no overflow.

There are at least 24 dimensions in float32 and 52 in float64: from there on the Bessel functions of
the density are short programs.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile
from field_shapes import check_shapes

from jaxgpu.numerics import Mixture, VonMisesFisher, fit_mixture, spherical_kmeans
from jaxgpu.numerics.sphere.mixture import m_step


def sample_mixture(d, concentrations, count, seed):
    """Sample about the first axes by Wood's rejection (1994); return float32 rows and labels."""
    rng, n, draws = np.random.default_rng(seed), d - 1, []
    for i, k in enumerate(concentrations):
        b = n / (2 * k + np.hypot(2 * k, n))
        middle = (1 - b) / (1 + b)
        z = rng.beta(n / 2, n / 2, 8 * count)
        w = (1 - (1 + b) * z) / (1 - (1 - b) * z)
        gain = k * (w - middle) + n * np.log((1 - middle * w) / (1 - middle**2))
        w = w[gain > np.log(rng.uniform(size=w.size))][:count, None]
        x = rng.normal(size=(count, d))
        x[:, i] = 0
        x *= np.sqrt(1 - w * w) / np.linalg.norm(x, axis=1, keepdims=True)
        x[:, i] = w[:, 0]
        draws.append(x.astype(np.float32))
    return np.concatenate(draws), np.repeat(np.arange(len(draws)), count)


def mean_cosine(d, k):
    """Return the mean cosine A(k) and its slope in many dimensions, by the bound of Amos (1974)."""
    v = d / 2 - 1
    s = np.hypot(v + 1.5, k)
    a = k / (v + 0.5 + s)
    assert np.all((v + 0.5 + s) / (v + 0.5 + np.hypot(v + 0.5, k)) - 1 < 1e-4)  # the upper bound
    return a, a / k * (1 - a * k / s)


def purity(labels, found):
    table = np.zeros((labels.max() + 1, found.max() + 1))
    np.add.at(table, (labels, found), 1)
    return table.max(0).sum() / len(labels)


@pytest.mark.slow
@pytest.mark.parametrize("hard", [False, True])
def test_finds_planted_clusters(hard):
    x, labels = sample_mixture(24, [60.0, 25.0, 100.0], 300, seed=0)
    for seed in range(2):
        fit = fit_mixture(x, 3, jax.random.key(seed), steps=10, hard=hard)
        mixture, history = fit.mixture, fit.history
        assert history.shape == (11,)
        found = np.asarray(mixture.responsibilities(x)).argmax(1)
        assert purity(labels, found) > 0.98
        order = np.asarray(mixture.mean_directions)[:, :3].argmax(0)
        k = np.asarray(mixture.concentrations)[order]
        # Allow 5 standard errors; one is about k sqrt(2 / (N (d - 1))).
        np.testing.assert_allclose(k, [60, 25, 100], rtol=5 * np.sqrt(2 / (300 * 23)))
        assert check_shapes(mixture) == {"K": 3, "d": 24}
        if not hard:  # except for the thousandth of a vector that keeps components finite
            assert np.all(np.diff(history) > -1e-6)


@pytest.mark.slow
def test_one_component_is_the_plain_fit():
    x, _ = sample_mixture(24, [8.0], 400, seed=2)
    mixture = fit_mixture(x, 1, jax.random.key(0), steps=2).mixture
    fit = VonMisesFisher.fit(x)
    np.testing.assert_allclose(mixture.concentrations[0], fit.concentration, rtol=1e-5)
    # The fit adds 1e-3 of a vector without direction to the 400: 2.5e-6 in the mean length.
    np.testing.assert_allclose(mixture.log_prob(x), fit.log_prob(x), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("hard", [False, True])
def test_recovers_its_parameters_in_32768_dimensions(hard):
    d, count, planted_k = 32768, 30, np.array([12000.0, 20000.0, 40000.0])
    x, labels = sample_mixture(d, planted_k, count, seed=3)
    a, rise = mean_cosine(d, planted_k)
    # A mean of N samples is longer than A: its squared length is A^2 + (1 - A^2) / N.
    length = np.sqrt(a * a + (1 - a * a) / count)
    want = planted_k
    for _ in range(20):  # the concentration of that length, by Newton's steps
        value, slope = mean_cosine(d, want)
        want = want - (value - length * count / (count + 1e-3)) / slope
    for seed in range(2):
        fit = fit_mixture(x, 3, jax.random.key(seed), steps=5, hard=hard)
        mixture, history = fit.mixture, fit.history
        assert purity(labels, np.asarray(mixture.responsibilities(x)).argmax(1)) == 1
        order = np.asarray(mixture.mean_directions)[:, :3].argmax(0)
        got = np.asarray(mixture.concentrations, np.float64)[order]
        # Allow five standard errors of the mean cosine, sqrt(A' / N), divided by A'.
        assert np.all(abs(got - want) < 5 / np.sqrt(count * np.asarray(rise))), (got, want)
        closeness = np.asarray(mixture.mean_directions)[order, np.arange(3)]
        np.testing.assert_allclose(closeness, a / length, rtol=0.01)
        np.testing.assert_allclose(np.exp(mixture.log_weights), 1 / 3, rtol=1e-4)
        # The entropy of a component minus log 3 is minus the mean log density, except for the gain
        # by fitting: half a unit per parameter, 3 d of them, divided by the number of vectors.
        p = [VonMisesFisher(np.eye(1, d, dtype=np.float32)[0], np.float32(k)) for k in planted_k]
        plain = -np.mean([float(q.entropy()) for q in p]) - np.log(3)
        assert 0.8 < (history[-1] - plain) / (0.5 * d / count) < 1.2


@pytest.mark.slow
def test_single_vectors_in_32768_dimensions_stay_finite():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 32768))
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    fit = fit_mixture(x, 6, jax.random.key(1), steps=3)
    mixture, history = fit.mixture, fit.history
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((mixture, history)))
    assert np.all(np.isfinite(mixture.log_prob(x)))


@pytest.mark.slow
def test_a_second_fit_compiles_nothing_and_one_may_end_by_itself(tmp_path):
    x, _ = sample_mixture(24, [40.0, 90.0], 60, seed=4)
    fit_mixture(x, 2, jax.random.key(0), steps=20)
    with no_compile():
        whole = fit_mixture(x[::-1].copy(), 2, jax.random.key(1), steps=20)
    assert len(repr(whole).splitlines()) <= 15
    is_settled = lambda state: state.gain < 1e-4
    ended = fit_mixture(x, 2, jax.random.key(2), steps=20, until=is_settled)
    assert 1 < len(ended.history) < 21 and ended.history[-1] - ended.history[-2] < 1e-4
    # The history belongs to the current mixture: row 0 to the start, the last row to the result.
    last = jnp.mean(ended.mixture.log_prob(x))
    np.testing.assert_allclose(ended.history[-1], last, rtol=1e-5)
    fit_mixture(x, 2, jax.random.key(2), steps=3, out=tmp_path)
    resumed = fit_mixture(x, 2, jax.random.key(2), steps=6, out=tmp_path, resume=True)
    plain = fit_mixture(x, 2, jax.random.key(2), steps=6)
    np.testing.assert_array_equal(resumed.history, plain.history)


def test_a_component_without_a_share_keeps_its_direction():
    x = jnp.eye(24)
    before = Mixture(x[:2], jnp.ones(2), jnp.zeros(2))
    share = jnp.zeros((24, 2)).at[:, 0].set(1)
    after = jax.jit(m_step)(x, share, before)
    np.testing.assert_array_equal(after.mean_directions[1], x[1])
    assert after.concentrations[1] == 0 and np.isfinite(after.log_weights[1])


def test_kmeans_starts_from_far_apart_vectors():
    """Select the best of eight candidates; the first alone sometimes misses a cluster for good."""
    x, labels = sample_mixture(24, [500.0] * 6, 50, seed=1)
    for seed in range(30):
        start = spherical_kmeans(x, 6, jax.random.key(seed))
        assert len(set(np.asarray(start.mean_directions)[:, :6].argmax(1))) == 6, seed


def test_refuses_more_components_than_vectors():
    with pytest.raises(ValueError, match="fit_mixture: 5 components for 3 vectors; there must be"):
        fit_mixture(np.eye(3), 5, jax.random.key(0))


@pytest.mark.slow
def test_a_refined_mixture_is_the_next_of_a_fit_and_leaves_out_what_weighs_nothing(x64):
    x = unit(sample_mixture(52, [80.0, 160.0], 50, seed=3)[0])
    begun = spherical_kmeans(x, 2, jax.random.key(0))
    fitted = fit_mixture(x, 2, jax.random.key(0), steps=1).mixture
    more = np.concatenate([x, np.roll(x[:30], 1, axis=1)])
    weights = np.concatenate([np.ones(len(x)), np.zeros(30)])
    refined = jax.jit(lambda begun: (begun.em_step(x), begun.em_step(more, weights)))(begun)
    for found in refined:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-12), found, fitted)


@pytest.mark.slow
def test_a_refined_mixture_is_differentiable_in_the_vectors_and_their_weights(x64):
    x = unit(sample_mixture(52, [80.0, 160.0], 8, seed=4)[0])
    begun = spherical_kmeans(x, 2, jax.random.key(0))
    turned = np.roll(x, 1, axis=1)

    @jax.jit
    @jax.value_and_grad
    def loss(move):
        """Return the loss after moving the second weight, and all vectors along the sphere."""
        weights = jnp.linspace(0.5, 1.5, len(x)).at[2].add(move[0])
        y = x + move[1] * turned
        y = y / jnp.linalg.norm(y, axis=1, keepdims=True)
        return jnp.sum(begun.em_step(y, weights).concentrations)

    _, slope = loss(np.zeros(2))
    for i, step in enumerate(1e-5 * np.eye(2)):
        np.testing.assert_allclose(slope[i], (loss(step)[0] - loss(-step)[0]) / 2e-5, rtol=1e-6)


def unit(x):
    """Return the vectors in float64, normalised in float64."""
    x = x.astype(np.float64)
    return x / np.linalg.norm(x, axis=1, keepdims=True)
