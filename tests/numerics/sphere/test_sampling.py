"""Samples have the moments of the distribution, and gradients of expectations are unbiased."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

from jaxgpu.numerics import VonMisesFisher
from jaxgpu.numerics.sphere.sampling import cosine_derivative, sample_gaps, sample_vmf


def mean_cosine(d, k):
    """Return the mean cosine A(k) and its slope, by SciPy."""
    if k == 0:
        return 0.0, 1 / d
    a = ive(d / 2, k) / ive(d / 2 - 1, k)
    return a, 1 - a * a - (d - 1) * a / k


@pytest.mark.slow
@pytest.mark.parametrize("d, k", [(2, 0.5), (5, 2.0), (784, 829.0), (64, 0.0)])
def test_moments_over_three_seeds(d, k):
    m = jnp.zeros(d).at[1].set(1)
    sample = jax.jit(lambda key: sample_vmf(key, m, jnp.float32(k), 20000))
    a, rise = mean_cosine(d, k)
    for seed in range(3):
        x = np.asarray(sample(jax.random.key(seed)), np.float64)
        np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, atol=1e-6)
        # The variance of the cosine is A'(k); tangent components have A / k, or 1 / d at k = 0.
        w, t = x[:, 1], x[:, 0]
        side = a / k if k > 0 else 1 / d
        assert abs(w.mean() - a) < 4 * np.sqrt(rise / 20000) + 1e-6
        assert abs(t.mean()) < 4 * np.sqrt(side / 20000)
        spread = np.std((w - a) ** 2) / np.sqrt(20000)
        assert abs(np.mean((w - a) ** 2) - rise) < 4 * spread + 1e-6
        assert abs(np.mean(t**2) - side) < 4 * np.std(t**2) / np.sqrt(20000)


@pytest.mark.slow
@pytest.mark.parametrize("d, concentrations", [(2, [0.5]), (5, [2.0, 0.0]), (100, [70.0])])
def test_gradients_of_expectations_are_unbiased(d, concentrations):
    """The derivative of the accepted proposal is known to be biased at d = 5, k = 2."""
    m = jnp.zeros(d).at[0].set(1)
    rise = jax.jit(
        jax.vmap(jax.grad(lambda k, key: jnp.mean(sample_vmf(key, m, k, 4000)[:, 0])), (None, 0))
    )
    for k in concentrations:
        got = np.asarray(rise(jnp.float32(k), jax.random.split(jax.random.key(3), 25)))
        _, want = mean_cosine(d, k)
        assert abs(got.mean() - want) < 4 * got.std() / 5, (k, got.mean(), want)
        # They are far less noisy than the score function's, whose deviation is 1 / sqrt(N).
        assert got.std() < want


def test_the_slope_is_that_of_the_quantiles():
    """Compare with the distribution function by quadrature: dw/dk = -(dF/dk) / p at fixed F."""
    d, k = 6, 3.0
    t = np.linspace(-1, 1, 200001)

    def quantiles(k, levels):
        law = np.exp(k * (t - 1)) * (1 - t * t) ** ((d - 3) / 2)
        total = np.concatenate([[0], np.cumsum((law[1:] + law[:-1]) / 2)])
        return np.interp(levels, total / total[-1], t)

    levels = np.array([0.001, 0.1, 0.4, 0.5, 0.8, 0.99])
    want = (quantiles(k + 1e-3, levels) - quantiles(k - 1e-3, levels)) / 2e-3
    slope = jax.jit(lambda gap, k: cosine_derivative(d, gap, k))
    got = slope((1 - quantiles(k, levels)).astype(np.float32), np.float32(k))
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_gaps_keep_their_precision_where_all_draws_are_close():
    gap = np.asarray(sample_gaps(jax.random.key(0), 3, jnp.float32(1e9), 20000), np.float64)
    np.testing.assert_allclose(gap.mean() * 1e9, 1, atol=4 / np.sqrt(20000))  # exponential law


@pytest.mark.slow
def test_many_dimensions(x64):
    p = VonMisesFisher(jnp.zeros(8192).at[7].set(1), jnp.asarray(15000.0))
    x = p.sample(jax.random.key(1), 400)
    assert x.shape == (400, 8192) and x.dtype == jnp.float64
    rise, _ = p.fisher_information()
    assert abs(float(x[:, 7].mean() - p.resultant_length)) < 4 * float(jnp.sqrt(rise / 400))
    fit = VonMisesFisher.fit(x)
    # The length of a mean of 400 exceeds A by (1 - A^2) / (2 N A).
    a = float(p.resultant_length)
    bias = (1 - a * a) / (800 * a) / float(rise)
    assert abs(float(fit.concentration) - 15000 - bias) < 5 / np.sqrt(400 * float(rise))


@pytest.mark.slow
def test_draws_in_8192_dimensions_take_a_fifth_of_a_millisecond_each():
    """Measure CPU time on all cores together; check the moments, too, over three seeds."""
    count, d, k = 2500, 8192, np.float32(15000)
    m = jnp.zeros(d).at[7].set(1)
    sample = jax.jit(lambda key: sample_vmf(key, m, k, count))
    a, rise = mean_cosine(d, 15000.0)
    sample(jax.random.key(0)).block_until_ready()
    seconds = []
    for seed in range(3):
        start = time.process_time()
        x = sample(jax.random.key(seed)).block_until_ready()
        seconds.append(time.process_time() - start)
        x = np.asarray(x)[:, [7, 0, 8191]].astype(np.float64)
        w, t = x[:, 0], x[:, 1:]
        assert abs(w.mean() - a) < 4 * np.sqrt(rise / count)
        assert abs(w.var() - rise) < 4 * np.sqrt(2 / count) * rise  # nearly normal
        assert np.all(abs(t.mean(0)) < 4 * np.sqrt(a / k / count))
        assert np.all(abs(np.mean(t * t, 0) * k / a - 1) < 4 * np.sqrt(2 / count))
    assert np.median(seconds) < 2e-4 * count, seconds


def test_the_number_of_draws_is_what_was_asked_for(x64):
    """The number need not be a multiple of the block of samples that is generated at a time."""
    m = np.eye(1, 3000)[0]
    x = np.asarray(jax.jit(lambda key: sample_vmf(key, m, 900.0, 50))(jax.random.key(0)))
    assert x.shape == (50, 3000) and x.dtype == np.float64
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-13)
    close = x @ x.T - np.eye(50)
    a = 900 / (1499.5 + np.hypot(1500.5, 900))  # the bound of Amos (1974), below by 1e-7
    assert np.max(abs(close - a * a * (1 - np.eye(50)))) < 0.2  # ten deviations: no two alike


@pytest.mark.slow
def test_the_mean_direction_moves_the_draws():
    def spread(m):
        m = m / jnp.linalg.norm(m)
        return jnp.sum(sample_vmf(jax.random.key(0), m, jnp.float32(9), 500)[:, 2])

    m = np.array([0.6, 0.0, 0.8], np.float32)
    slope = np.asarray(jax.jit(jax.grad(spread))(m))
    assert np.all(np.isfinite(slope)) and abs(float(np.sum(slope * m))) < 1e-2
    # E[x] = A m, so along the tangent t the third component moves by A t_3.
    t = np.array([-0.8, 0.0, 0.6])
    a, _ = mean_cosine(3, 9.0)
    assert abs(float(np.sum(slope * t)) / 500 - 0.6 * a) < 0.05
