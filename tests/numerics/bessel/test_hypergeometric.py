"""log 0F1 against mpmath, and its smoothness at zero."""

import jax
import mpmath
import numpy as np
import pytest
from bessel_table import argument_slope, evaluate, order_slope

from jaxgpu.numerics.bessel.hypergeometric import log_hyp0f1

B = np.array([0.3, 1.0, 1.5, 12.5, 25.0, 25.5, 392.0, 16384.0, 65536.0])
Z = np.array([1e-12, 1e-3, 0.99, 1.0, 20.0, 143.0, 145.0, 1e4, 1e8])


def value_and_slopes(b, z):
    """Compute the logarithm and its derivatives in both arguments in one program."""
    return log_hyp0f1(b, z), order_slope(log_hyp0f1)(b, z), argument_slope(log_hyp0f1)(b, z)


@pytest.mark.slow
def test_relative_precision():
    with mpmath.workdps(60):
        exact = [[float(mpmath.log(_hyp0f1(b, z))) for z in map(mpmath.mpf, Z)] for b in B]
    values, _, _ = evaluate(value_and_slopes, B[:, None], Z)
    for b, want, got in zip(B, exact, values):
        # f is lnGamma(b) + s - v log((v + s) / 2) + ...: the terms cancel where v < 24 < s.
        size = np.abs(want) + np.where((b < 25) & (Z > 100), 40 + np.log(Z) * b, 0)
        assert np.all(np.abs(got - want) <= 8 * 2.0**-53 * size), b


def _hyp0f1(b, z):
    """Sum the series of 0F1 to 60 digits; mpmath's own function fails at large arguments."""
    v, x = mpmath.mpf(b) - 1, 2 * mpmath.sqrt(z)
    if z < 400:
        return mpmath.hyp0f1(b, z)
    return mpmath.gamma(b) * mpmath.besseli(v, x, maxterms=10**7) * (x / 2) ** -v


def test_a_known_parameter(x64):
    known = jax.jit(lambda z: log_hyp0f1(392.0, z))(Z)
    np.testing.assert_allclose(known, evaluate(value_and_slopes, 392.0, Z)[0], rtol=2e-15)


@pytest.mark.slow
def test_smooth_at_zero_and_differentiable_in_both(x64):
    b = np.array([0.5, 2.0, 40.0, 500.0])
    np.testing.assert_allclose(evaluate(value_and_slopes, b, 0.0)[2], 1 / b, rtol=1e-15)
    # log(1 + z / b + z^2 / (2 b (b + 1)) + ...)
    second = 1 / (b * (b + 1)) - 1 / b**2
    with jax.disable_jit():  # to compile it takes longer
        got = argument_slope(argument_slope(log_hyp0f1))(b, 0 * b)
    np.testing.assert_allclose(got, second, rtol=1e-12)
    b, z = np.array([(2.0, 3.0), (3.0, 900.0), (40.0, 20.0), (40.0, 0.5), (40.0, 400.0)]).T
    _, *slopes = evaluate(value_and_slopes, b, z)
    with mpmath.workdps(40):
        h = mpmath.mpf(10) ** -15
        log = lambda b, z: mpmath.log(mpmath.hyp0f1(b, z))
        for i, (c, y) in enumerate(zip(b, z)):
            by_b = (log(c + h, y) - log(c - h, y)) / (2 * h)
            by_z = (log(c, y + h) - log(c, y - h)) / (2 * h)
            np.testing.assert_allclose(slopes[0][i], float(by_b), rtol=2e-13)
            np.testing.assert_allclose(slopes[1][i], float(by_z), rtol=2e-13)


def test_outside_its_domain():
    b, z = np.array([0.0, -1.0, 1.0, 1.0, 2.0]), np.array([1.0, 1.0, -1.0, np.inf, 0.0])
    got = evaluate(log_hyp0f1, b, z, np.float32)
    np.testing.assert_array_equal(got, [np.nan, np.nan, np.nan, np.nan, 0])
