"""The expansion coefficients against published ones and against their defining equations."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from jaxgpu.numerics.bessel.coefficients import debye, low_order_k, reciprocal_gamma, uniform_terms
from jaxgpu.numerics.bessel.disk import DOUBLE, SINGLE, TEMME_LIMIT


def test_the_first_terms_are_the_published_ones():
    """log(1 + u_1 / v + u_2 / v^2 + ...) with u_1, u_2 of DLMF 10.41.10."""
    want = [
        ["1/8", "-5/24"],
        ["1/16", "-3/8", "5/16"],
        ["25/384", "-531/640", "221/128", "-1105/1152"],
    ]
    assert debye(3) == [[Fraction(c) for c in row] for row in want]


def test_at_zero_argument_the_expansion_is_stirling_s():
    """x -> 0 means w = 1: sum_k D_k(1) / v^k = -(log Gamma series), DLMF 5.11.1."""
    for k, row in enumerate(debye(16), 1):
        p, q = mpmath.bernfrac(k + 1) if k % 2 else (0, 1)
        assert sum(row) == -Fraction(int(p), int(q)) / (k * (k + 1))


def test_at_zero_order_the_expansion_is_hankel_s():
    """v = 0 means w = 0: exp of the series has the coefficients a_k(0) of DLMF 10.17.1."""
    d = [row[0] for row in debye(16)]
    a, series = [Fraction(1)], [Fraction(1)]
    for k in range(1, 17):
        a.append(-a[-1] * (0 - (2 * k - 1) ** 2) / (8 * k))
        series.append(sum(j * d[j - 1] * series[k - j] for j in range(1, k + 1)) / k)
    assert series == a


def test_as_many_terms_as_the_least_s_asks_for():
    """The first omitted term is below the accuracy, relative to s, in the whole quadrant."""
    w = np.linspace(0, 1, 200)
    for least in (10.0, 24.0, 60.0, 511.0):
        for accuracy in (2.0**-56, 2.0**-27):
            kept = len(uniform_terms(least, accuracy))
            worst = [
                np.abs(np.polyval([float(c) for c in row[::-1]], w)).max() for row in debye(16)
            ]
            sizes = np.array(worst) / least ** np.arange(2.0, 18.0)
            assert np.all(sizes[kept:] <= accuracy) and sizes[kept - 1] > accuracy
    assert [len(uniform_terms(s, 2.0**-56)) for s in (24.0, 60.0, 511.0)] == [16, 9, 4]


@pytest.mark.parametrize("size, bound", [(SINGLE, 1e-9), (DOUBLE, 1e-16)])
def test_reciprocal_gamma(size, bound):
    with mpmath.workdps(30):
        for t in np.linspace(-0.5, 0.5, 101):
            got = 1 + t * polynomial(reciprocal_gamma(size.gamma), mpmath.mpf(t))
            assert abs(got - mpmath.rgamma(1 + mpmath.mpf(t))) < bound


@pytest.mark.parametrize("size, edge, u", [(SINGLE, 10.0, 2.0**-24), (DOUBLE, 24.0, 2.0**-53)])
def test_low_order(size, edge, u):
    """Errors enter K_t and K_{t+1} by factors of at most 0.25 and 0.67: below u / 2 remains."""
    rows = low_order_k(TEMME_LIMIT, edge, size.smooth)
    with mpmath.workdps(40):
        width = mpmath.log(edge / TEMME_LIMIT) / 2
        for x in np.geomspace(TEMME_LIMIT, edge, 9):
            for t in map(mpmath.mpf, [0.0, 0.1, 0.3, 0.49]):
                scale = mpmath.sqrt(2 * x / mpmath.pi) * mpmath.exp(x)
                k, above = (scale * mpmath.besselk(order, x) for order in (t, t + 1))
                powers = [polynomial(row, 4 * t * t) for row in rows]
                z = mpmath.log(x / mpmath.sqrt(TEMME_LIMIT * edge)) / width
                slope = polynomial([i * c for i, c in enumerate(powers)][1:], z) / width
                assert abs((k - 1) / (t * t - 0.25) - polynomial(powers, z)) < 2 * u
                # x dK_t/dx = t K_t - x K_{t+1}, DLMF 10.29.2
                want = (k * (t + x + 0.5) - x * above) / (t * t - 0.25)
                assert abs(want - slope) < u / 2 / 0.67


def polynomial(coefficients, z):
    return sum(mpmath.mpf(c) * z**k for k, c in enumerate(coefficients))
