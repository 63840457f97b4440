"""The distribution against closed forms in three dimensions, quadrature, and real data."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from field_shapes import check_shapes

from jaxgpu.numerics.sphere.von_mises_fisher import VonMisesFisher, log_sphere_area
from jaxgpu.studies.directions import features


def make_vmf(d, k, dtype=np.float64):
    return VonMisesFisher(np.eye(1, d, d - 1, dtype=dtype)[0], k)


def expectation(d, k, f):
    """Return E[f(t)] of the cosine t to the mean direction, by quadrature in 30 digits."""
    with mpmath.workdps(30):
        law = lambda t: mpmath.exp(k * t) * (1 - t * t) ** (mpmath.mpf(d - 3) / 2)
        points = [-1, 0, mpmath.mpf(k) / (k + d), 1]
        return mpmath.quad(lambda t: f(t) * law(t), points) / mpmath.quad(law, points)


@pytest.mark.slow
def test_three_dimensions_in_closed_form(x64):
    x = np.array([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    k = np.array([1e-8, 0.3, 4.0, 300.0])
    p = make_vmf(3, k)
    every = jax.vmap(
        lambda p: (p.log_prob(x), p.resultant_length, p.entropy()), (VonMisesFisher(None, 0),)
    )
    log_p, resultant, entropy = every(p)
    # The closed forms are log(k / (4 pi sinh k)) and coth k - 1 / k.
    log_c = np.log(k / (2 * np.pi)) - k - np.log(-np.expm1(-2 * k))
    np.testing.assert_allclose(log_p, log_c[:, None] + k[:, None] * x[:, 2], rtol=1e-14)
    log_c, k = log_c[1:], k[1:]  # the closed form of the mean loses its digits below
    a = 1 / np.tanh(k) - 1 / k
    np.testing.assert_allclose(resultant[1:], a, rtol=1e-13)
    np.testing.assert_allclose(entropy[1:], -log_c - k * a, rtol=1e-13)
    assert check_shapes(make_vmf(3, np.float64(2))) == {"d": 3}
    np.testing.assert_allclose(log_sphere_area(2), np.log(2 * np.pi), rtol=1e-15)


@pytest.mark.parametrize("d, k", [(2, 1.3), (60, 70.0)])
def test_mean_and_divergence_by_quadrature(x64, d, k):
    p, q = make_vmf(d, k), make_vmf(d, 0.6 * k)
    mean = float(expectation(d, k, lambda t: t))
    np.testing.assert_allclose(p.mean[-1], mean, rtol=1e-14)
    drop = float(p.log_normalizer() - q.log_normalizer())
    np.testing.assert_allclose(p.kl_divergence(q), 0.4 * k * mean - drop, rtol=1e-12)
    tilted = VonMisesFisher(np.roll(p.mean_direction, 1), p.concentration)
    np.testing.assert_allclose(p.kl_divergence(tilted), k * mean, rtol=1e-12)
    np.testing.assert_allclose(p.kl_divergence(p), 0, atol=1e-13)


def ratio(d, k):
    """Return I_{d/2} / I_{d/2-1} to 40 digits, by Gauss's continued fraction.

    It runs backwards from Amos's bound, whose relative error is below 1 / order. The m-th step
    reduces it by ((sqrt(order^2 + k^2) - order) / k)^2, in total about exp(-m^2 / k) for large k.
    """
    with mpmath.workdps(40):
        v, k = mpmath.mpf(d) / 2 - 1, mpmath.mpf(k)
        start = int(60 + 10 * mpmath.sqrt(k))
        order = v + 1 + start
        r = k / (order + mpmath.sqrt(order * order + k * k))
        for j in range(start, 0, -1):
            r = 1 / (2 * (v + j) / k + r)
        return r


@pytest.mark.slow
def test_smooth_at_no_concentration(x64):
    """The density is 1 + k t + ..., where t is the cosine: log C = log C_0 - k^2 / (2 d)."""
    x, q = 0.6 * np.eye(1, 7)[0] + 0.8 * np.eye(1, 7, 6)[0], make_vmf(7, 0.3)

    def all_values(k):
        p = make_vmf(7, k)
        return jnp.stack([p.log_normalizer(), p.log_prob(x), p.entropy(), p.kl_divergence(q)])

    def with_slope(k):
        return jax.jvp(all_values, (k,), (1.0,))

    # Run operation by operation, because compiling it takes longer.
    (value, first), (_, second) = jax.jvp(with_slope, (0.0,), (1.0,))
    np.testing.assert_allclose(value[2], log_sphere_area(7), rtol=1e-15)
    np.testing.assert_allclose(first, [0, 0.8, 0, -0.3 / 7], atol=1e-14)
    np.testing.assert_allclose(second, [1 / 7, -1 / 7, -1 / 7, 1 / 7], atol=1e-14)
    np.testing.assert_allclose(make_vmf(7, 0.0).fisher_information(), (1 / 7, 0), rtol=1e-14)


@pytest.mark.parametrize("d, k", [(2, 0.7), (131072, 60000.0)])
def test_few_and_many_dimensions_against_mpmath(x64, d, k):
    with mpmath.workdps(30):
        half, z = mpmath.mpf(d) / 2, mpmath.mpf(k) ** 2 / 4
        area = mpmath.log(2) + half * mpmath.log(mpmath.pi) - mpmath.loggamma(half)
        series = mpmath.log(mpmath.hyp0f1(half, z, maxterms=10**6))
        a = ratio(d, k)
        entropy = area + series - k * a
        rise = 1 - a * a - (d - 1) * a / k
    p = make_vmf(d, k)
    np.testing.assert_allclose(p.log_normalizer(), float(area + series), rtol=1e-14)
    # The entropy is a difference of terms as large as the logarithm of the area.
    np.testing.assert_allclose(p.entropy(), float(entropy), rtol=1e-13)
    np.testing.assert_allclose(p.fisher_information(), (float(rise), float(k * a)), rtol=1e-13)
    x = 0.6 * np.eye(1, d)[0] + 0.8 * np.eye(1, d, d - 1)[0]
    np.testing.assert_allclose(p.log_prob(x), float(0.8 * k - area - series), rtol=1e-14)


@pytest.mark.slow
def test_fits_real_images_and_tokens():
    """Check the recorded concentrations of these data and the likelihood equation itself."""
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


@pytest.mark.slow
def test_fit_is_a_maximum_takes_weights_and_is_differentiable(x64):
    d = 52  # from here on the Bessel functions are short programs
    x = features.unit(np.random.default_rng(0).normal(size=(40, d)) + np.arange(d) / 8)
    fit = VonMisesFisher.fit(x)
    scale_fit = lambda scale: VonMisesFisher(fit.mean_direction, scale * fit.concentration)
    total = jax.jit(lambda scale: jnp.sum(scale_fit(scale).log_prob(x)))
    assert max(total(0.99), total(1.01)) < total(1.0)
    weights = np.random.default_rng(1).integers(0, 4, 40)
    twice = VonMisesFisher.fit(np.repeat(x, weights, axis=0))
    weighted = VonMisesFisher.fit(x, weights)
    np.testing.assert_allclose(weighted.concentration, twice.concentration, rtol=1e-13)
    np.testing.assert_allclose(weighted.mean_direction, twice.mean_direction, rtol=1e-12)
    same = VonMisesFisher.fit(np.eye(d)[[2, 2]])
    assert same.concentration == np.inf and same.mean_direction[2] == 1
    none = VonMisesFisher.fit(np.eye(1, d) * [[1], [-1]])
    assert none.concentration == 0 and np.sum(np.square(none.mean_direction)) == 1

    @jax.jit
    @jax.value_and_grad
    def concentration(move):
        y = x + move * np.roll(x, 1, axis=1)
        return VonMisesFisher.fit(y / jnp.linalg.norm(y, axis=1, keepdims=True)).concentration

    _, slope = concentration(0.0)
    change = concentration(1e-5)[0] - concentration(-1e-5)[0]
    np.testing.assert_allclose(slope, change / 2e-5, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 100, 131072])
def test_fit_to_twelve_digits(x64, d):
    """Compare with the concentration of the float64 length by one Newton step in 40 digits."""
    for goal in (1e-6, 0.03, 0.5, 0.99, 1 - 1e-6):
        near = float(VonMisesFisher.from_mean(goal * np.eye(1, d)[0]).concentration)
        if near > 1e8:  # as many terms as its square root
            continue
        a = ratio(d, near)
        with mpmath.workdps(40):
            rise = 1 - a * a - (d - 1) * a / mpmath.mpf(near)
            length = float(a)
            want = near + (length - a) / rise
            condition = float(length / (want * rise))
        fit = VonMisesFisher.from_mean(length * np.eye(1, d, d // 2)[0])
        np.testing.assert_allclose(fit.mean_direction[d // 2], 1, rtol=4e-16)
        # Half an ulp of the length changes the concentration by condition / 2 ulp.
        bound = max(1e-12, 2**-53 * condition)
        assert abs(float(fit.concentration) / float(want) - 1) < bound, (goal, condition)


def test_refuses_what_is_not_a_list_of_vectors():
    with pytest.raises(ValueError, match=r"fit: x has shape \(3,\); it must be \[N, d\]"):
        VonMisesFisher.fit(np.ones(3))
    with pytest.raises(TypeError, match="fit: x is int32; it must be floating"):
        VonMisesFisher.fit(np.eye(3, dtype=np.int32))
    with pytest.raises(ValueError, match=r"fit: weights has shape \(2,\), x has 3 rows"):
        VonMisesFisher.fit(np.eye(3), np.ones(2))


def test_the_mean_vector_in_three_dimensions():
    p = VonMisesFisher(np.float32([0, 0, 1]), np.float32(4))
    want = 1 / np.tanh(4) - 1 / 4
    np.testing.assert_allclose(jax.jit(lambda p: p.resultant_length)(p), want, rtol=1e-6)
