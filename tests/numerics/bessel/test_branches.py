"""Derivatives of log I and log K that the tables in test_logarithms.py do not contain."""

import jax
import mpmath
import numpy as np
import pytest
from bessel_table import argument_slope, evaluate, family, load_tables, order_slope

from jaxgpu.numerics import log_kv
from jaxgpu.numerics.bessel.branches import log_bessel
from jaxgpu.numerics.bessel.debye import BesselKind


def log_i(v, x):
    return log_bessel(BesselKind(1), v, x)


def log_k(v, x):
    return log_bessel(BesselKind(-1), v, x)


@pytest.mark.slow
@pytest.mark.parametrize("f, column, sign", [(log_i, "ratio_i", 1), (log_k, "ratio_k", -1)])
def test_second_derivative_in_the_argument(f, column, sign):
    """Bessel's equation gives it from the first one; its cancellation costs the table digits."""
    table = load_tables()
    usual = (table["x"] > 1e-100) & (table["x"] < 1e100) & (table["v"] < 1e100)
    v, x = table["v"][usual], table["x"][usual]
    got = evaluate(argument_slope(argument_slope(f)), v, x)
    with mpmath.workdps(60):
        exact, lost = [], []
        for a, b, high, low in zip(v, x, table[column][usual], table.low[column][usual]):
            a, b, ratio = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(high) + mpmath.mpf(low)
            g = a / b + sign * ratio
            terms = [1, a * a / b / b, -g / b, -g * g]
            exact.append(float(sum(terms)))
            lost.append(float(1e-24 * max(map(abs, terms)) / abs(sum(terms))))
    # Of the table's 25 digits (about 31 in `high` and `low`), 13 must remain in the result.
    known = np.array(lost) < 1e-13
    assert known.mean() > 0.9
    error = np.abs(np.asarray(got) / exact - 1)[known]
    assert error.max() < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["i", "k"])
def test_derivatives_at_ties_and_zero(kind):
    """A maximum would halve the derivative at v = x, as an absolute value would at v = 0."""
    at = np.array([0.7, 5.0, 30.0, 100.0])
    values = evaluate(family(kind), at, at)
    got = [values[name] for name in (f"dlog{kind}v_dv", f"slope_{kind}")]
    bessel, h = getattr(mpmath, f"bessel{kind}"), mpmath.mpf(10) ** -12
    with mpmath.workdps(40):
        for i, a in enumerate(at):
            log = lambda v, x: mpmath.log(bessel(v, x))
            by_v = (log(a + h, a) - log(a - h, a)) / (2 * h)
            by_x = (log(a, a + h) - log(a, a - h)) / (2 * h)
            np.testing.assert_allclose([g[i] for g in got], [float(by_v), float(by_x)], rtol=1e-14)


@pytest.mark.slow
def test_second_derivative_in_an_order_of_zero(x64):
    """K is even in v; an implementation with |v| would lose its second derivative."""
    h = mpmath.mpf(10) ** -12
    with mpmath.workdps(60):
        bend = mpmath.log(mpmath.besselk(h, 1.3) / mpmath.besselk(0, 1.3)) * 2 / h**2
    v, x = np.zeros(15), np.full(15, 1.3)
    with jax.disable_jit():  # to compile them takes longer
        slope, curve = jax.jvp(lambda v: order_slope(log_kv)(v, x), (v,), (np.ones(15),))
    assert abs(slope[0]) < 1e-15 and abs(curve[0] / float(bend) - 1) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("f, name", [(log_i, "besseli"), (log_k, "besselk")])
def test_third_and_mixed_derivatives(f, name):
    """Test in float32, whose programs are short, on both sides of its edge at s = 10."""
    v, x = np.array([0.25, 2.5, 7.0, 4.0, 24.0]), np.array([0.5, 3.0, 3.0, 0.25, 1.0])

    def derivatives(v, x):
        third = argument_slope(argument_slope(argument_slope(f)))
        mixed = order_slope(argument_slope(f)), argument_slope(order_slope(f))
        return [g(v, x) for g in (third, *mixed)]

    got = evaluate(derivatives, v, x, np.float32)
    bessel, h = getattr(mpmath, name), mpmath.mpf(10) ** -8
    with mpmath.workdps(40):
        log = lambda v, x: mpmath.log(bessel(v, x))
        for i, (a, b) in enumerate(zip(map(mpmath.mpf, v), map(mpmath.mpf, x))):
            ahead, behind = (log(a, b + s * 2 * h) - 2 * log(a, b + s * h) for s in (1, -1))
            rise, fall = (log(a + s * h, b + h) - log(a + s * h, b - h) for s in (1, -1))
            third, mixed = (ahead - behind) / (2 * h**3), (rise - fall) / (4 * h**2)
            want = [float(y) for y in (third, mixed, mixed)]
            np.testing.assert_allclose([g[i] for g in got], want, rtol=256 * 2.0**-24)


LIMITS = [  # v, x, derivatives of log I in x and v, of log K in x and v
    (0.0, 0.0, 0, -np.inf, -np.inf, 0),
    (2.0, 0.0, np.inf, -np.inf, -np.inf, np.inf),
    (2.0, np.inf, 1, 0, -1, 0),
    (1.0, -1.0, np.nan, np.nan, np.nan, np.nan),
]


@pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.slow), np.float32])
def test_derivatives_at_limits_are_limits(dtype):
    v, x, *limits = np.array(LIMITS).T
    values = [evaluate(family(kind), v, x, dtype) for kind in "ik"]
    names = "slope_i", "dlogiv_dv", "slope_k", "dlogkv_dv"
    for name, want in zip(names, limits):
        np.testing.assert_array_equal((values[0] | values[1])[name], want)
