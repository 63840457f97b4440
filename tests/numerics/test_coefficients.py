"""The coefficients are the published ones, and what they are derived from."""

from fractions import Fraction

import mpmath
import numpy as np

from jaxgpu.numerics.coefficients import reciprocal_gamma, uniform


def test_the_first_terms_are_the_published_ones():
    """log(1 + u_1 / v + u_2 / v^2 + ...) with u_1, u_2 of DLMF 10.41.10."""
    tables = uniform(3)
    want = [
        ["1/8", "-5/24"],
        ["1/16", "-3/8", "5/16"],
        ["25/384", "-531/640", "221/128", "-1105/1152"],
    ]
    for row, exact in zip(tables.log, want):
        assert row == tuple(float(Fraction(c)) for c in exact)


def test_at_zero_argument_the_expansion_is_stirling_s():
    """x -> 0 means w = 1: sum_k D_k(1) / v^k = -(log Gamma series), DLMF 5.11.1."""
    at_one = [sum(row) for row in uniform(16).log]
    for k, value in enumerate(at_one, 1):
        bernoulli = float(mpmath.bernoulli(k + 1)) / (k * (k + 1)) if k % 2 else 0.0
        size = max(map(abs, uniform(16).log[k - 1]))
        assert abs(value + bernoulli) <= 1e-15 * size * k


def test_at_zero_order_the_expansion_is_hankel_s():
    """v = 0 means w = 0: exp of the series has the coefficients a_k(0) of DLMF 10.17.1."""
    d = [row[0] for row in uniform(16).log]
    a, series = [1.0], [1.0]
    for k in range(1, 13):
        a.append(-a[-1] * (0 - (2 * k - 1) ** 2) / (8 * k))
        series.append(sum(j * d[j - 1] * series[k - j] for j in range(1, k + 1)) / k)
    np.testing.assert_allclose(series, a, rtol=1e-13)


def test_slope_and_order_are_derivatives_of_the_logarithm():
    tables, w, e = uniform(8), 0.37, 1e-20j
    for k, (d, s, o) in enumerate(zip(*tables), 1):
        at = lambda row, z: sum(c * z**j for j, c in enumerate(row))
        slope = at(d, w + e).imag / 1e-20
        np.testing.assert_allclose(at(s, w), k * at(d, w) + 2 * w * slope, rtol=1e-12)
        np.testing.assert_allclose(at(o, w), k * at(d, w) - 2 * (1 - w) * slope, rtol=1e-12)


def test_reciprocal_gamma():
    t = np.linspace(-0.5, 0.5, 101)
    exact = np.array([float(mpmath.rgamma(1 + mpmath.mpf(a))) for a in t])
    for degree, bound in ((8, 1e-9), (14, 2.5e-16)):
        got = 1 + t * np.polynomial.polynomial.polyval(t, reciprocal_gamma(degree))
        assert np.abs(got - exact).max() < bound
