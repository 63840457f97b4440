"""The distribution against closed forms in three dimensions, quadrature, and real data."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from conformance import check
from shapes import check_shapes

from jaxgpu.numerics import features
from jaxgpu.numerics.von_mises_fisher import VonMisesFisher, log_sphere_area


def made(d, k, dtype=jnp.float64):
    return VonMisesFisher(jnp.zeros(d, dtype).at[d - 1].set(1), jnp.asarray(k, dtype))


def along(d, k, f):
    """E[f(t)] of the cosine t to the mean direction, by quadrature in 30 digits."""
    with mpmath.workdps(30):
        law = lambda t: mpmath.exp(k * t) * (1 - t * t) ** (mpmath.mpf(d - 3) / 2)
        points = [-1, 0, mpmath.mpf(k) / (k + d), 1]
        return mpmath.quad(lambda t: f(t) * law(t), points) / mpmath.quad(law, points)


def test_three_dimensions_in_closed_form(x64):
    x = np.array([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    for k in (1e-8, 0.3, 4.0, 300.0):
        p = made(3, k)
        # log(k / (4 pi sinh k)), and coth k - 1 / k
        log_c = np.log(k / (2 * np.pi)) - k - np.log(-np.expm1(-2 * k))
        np.testing.assert_allclose(p.log_prob(x), log_c + k * x[:, 2], rtol=1e-14)
        if k > 0.1:
            a = 1 / np.tanh(k) - 1 / k
            np.testing.assert_allclose(p.resultant, a, rtol=1e-13)
            np.testing.assert_allclose(p.entropy(), -log_c - k * a, rtol=1e-13)
    assert check_shapes(p) == {"d": 3}
    np.testing.assert_allclose(log_sphere_area(2), np.log(2 * np.pi), rtol=1e-15)


@pytest.mark.parametrize("d, k", [(2, 1.3), (5, 2.0), (40, 70.0)])
def test_mean_and_divergence_by_quadrature(x64, d, k):
    p, q = made(d, k), made(d, 0.6 * k)
    mean = float(along(d, k, lambda t: t))
    np.testing.assert_allclose(p.mean[-1], mean, rtol=1e-14)
    drop = float(p.log_normalizer() - q.log_normalizer())
    np.testing.assert_allclose(p.kl_divergence(q), 0.4 * k * mean - drop, rtol=1e-12)
    tilted = VonMisesFisher(jnp.roll(p.mean_direction, 1), p.concentration)
    np.testing.assert_allclose(p.kl_divergence(tilted), k * mean, rtol=1e-12)
    np.testing.assert_allclose(p.kl_divergence(p), 0, atol=1e-13)


def test_smooth_at_no_concentration(x64):
    p = made(7, 0.0)
    np.testing.assert_allclose(p.entropy(), log_sphere_area(7), rtol=1e-15)
    for order, want in ((1, 0.0), (2, 1 / 7)):
        f = lambda k: (
            made(7, 0.0).log_normalizer() + VonMisesFisher(p.mean_direction, k).log_normalizer()
        )
        for _ in range(order):
            f = jax.grad(f)
        np.testing.assert_allclose(f(0.0), want, atol=1e-14)


def test_fits_real_images_and_tokens():
    """The concentrations of notes on these data, and the likelihood equation itself."""
    images, labels = features.digits()
    fit = VonMisesFisher.fit(images)
    assert abs(float(fit.concentration) - 828.940) < 1e-3
    assert abs(float(VonMisesFisher.fit(features.tokens()).concentration) - 52.6006) < 1e-4
    one = [float(VonMisesFisher.fit(images[labels == c]).concentration) for c in (5, 0)]
    np.testing.assert_allclose(one, [925, 1480], atol=0.5)
    r, k = np.linalg.norm(images.mean(0)), mpmath.mpf(float(fit.concentration))
    with mpmath.workdps(40):
        bessel = lambda v: mpmath.besseli(v, k, maxterms=10**6)
        assert abs(float(bessel(392) / bessel(391)) - r) < 1e-15


def test_fit_is_a_maximum_and_takes_weights(x64):
    x = features.unit(np.random.default_rng(0).normal(size=(40, 6)) + np.arange(6))
    fit = VonMisesFisher.fit(x)
    total = lambda p: float(jnp.sum(p.log_prob(x)))
    for other in (0.99, 1.01):
        assert total(VonMisesFisher(fit.mean_direction, other * fit.concentration)) < total(fit)
    weights = np.random.default_rng(1).integers(0, 4, 40)
    twice = VonMisesFisher.fit(np.repeat(x, weights, axis=0))
    weighted = VonMisesFisher.fit(x, weights)
    np.testing.assert_allclose(weighted.concentration, twice.concentration, rtol=1e-13)
    np.testing.assert_allclose(weighted.mean_direction, twice.mean_direction, rtol=1e-12)
    same = VonMisesFisher.fit(np.eye(4)[[2, 2]])
    assert same.concentration == np.inf and same.mean_direction[2] == 1
    none = VonMisesFisher.fit(np.array([[1.0, 0, 0], [-1.0, 0, 0]]))
    assert none.concentration == 0 and jnp.sum(none.mean_direction**2) == 1


@pytest.mark.parametrize("d", [2, 3, 100, 8192, 131072])
def test_fit_recovers_the_concentration_of_a_mean(x64, d):
    for k in (1e-3, 1.0, d / 10, 3.0 * d):
        p = made(d, k)
        np.testing.assert_allclose(VonMisesFisher.from_mean(p.mean).concentration, k, rtol=1e-12)


def test_refuses_what_is_not_a_list_of_vectors():
    with pytest.raises(ValueError, match=r"fit: x has shape \(3,\); it must be \[N, d\]"):
        VonMisesFisher.fit(np.ones(3))
    with pytest.raises(TypeError, match="fit: x is int32; it must be floating"):
        VonMisesFisher.fit(jnp.eye(3, dtype=jnp.int32))
    with pytest.raises(ValueError, match=r"fit: weights has shape \(2,\), x has 3 rows"):
        VonMisesFisher.fit(np.eye(3), np.ones(2))


def test_conformance():
    x = jnp.asarray(np.eye(4, dtype=np.float32))
    p = made(4, 2.0, jnp.float32)
    check(lambda p, x: p.log_prob(x), p, x, differentiable=(0,))
    check(jax.jit(VonMisesFisher.fit), 0.2 * x + 0.3, differentiable=(0,), rtol=1e-4)
