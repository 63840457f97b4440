"""Derivatives of log I and log K beyond those of the tables, which are in test_bessel.py."""

import jax
import mpmath
import numpy as np
import pytest
from bessel_table import by_argument, by_order, evaluate, shipped

from jaxgpu.numerics import log_iv, log_kv
from jaxgpu.numerics.bessel.branches import log_bessel
from jaxgpu.numerics.bessel.uniform import Kind


def first(v, x):
    return log_bessel(Kind(1), v, x)


def second(v, x):
    return log_bessel(Kind(-1), v, x)


@pytest.mark.slow
@pytest.mark.parametrize("f, column, sign", [(first, "ratio_i", 1), (second, "ratio_k", -1)])
def test_second_derivative_in_the_argument(f, column, sign):
    """Bessel's equation gives it from the first, but for the digits that this costs the table."""
    table = shipped()
    usual = (table["x"] > 1e-100) & (table["x"] < 1e100) & (table["v"] < 1e100)
    v, x = table["v"][usual], table["x"][usual]
    got = evaluate(by_argument(by_argument(f)), v, x)
    with mpmath.workdps(60):
        exact, lost = [], []
        for a, b, high, low in zip(v, x, table[column][usual], table.low[column][usual]):
            a, b, ratio = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(high) + mpmath.mpf(low)
            g = a / b + sign * ratio
            terms = [1, a * a / b / b, -g / b, -g * g]
            exact.append(float(sum(terms)))
            lost.append(float(1e-24 * max(map(abs, terms)) / abs(sum(terms))))
    # the table's 25 digits, in `high` and `low` about 31, must leave 13 of the result
    known = np.array(lost) < 1e-13
    assert known.mean() > 0.9
    error = np.abs(np.asarray(got) / exact - 1)[known]
    assert error.max() < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("f, name", [(first, "besseli"), (second, "besselk")])
def test_derivatives_at_ties_and_zero(f, name):
    """v = x, where a maximum would be halved, and v = 0, where an absolute value would be."""
    at = np.array([0.7, 5.0, 30.0, 700.0])
    got = [evaluate(by(f), at, at) for by in (by_order, by_argument)]
    bessel, h = getattr(mpmath, name), mpmath.mpf(10) ** -20
    with mpmath.workdps(60):
        for i, a in enumerate(at):
            log = lambda v, x: mpmath.log(bessel(v, x))
            by_v = (log(a + h, a) - log(a - h, a)) / (2 * h)
            by_x = (log(a, a + h) - log(a, a - h)) / (2 * h)
            np.testing.assert_allclose([g[i] for g in got], [float(by_v), float(by_x)], rtol=1e-14)


@pytest.mark.slow
def test_second_derivative_in_an_order_of_zero():
    """K is even in v: a second derivative that |v| would lose."""
    h = mpmath.mpf(10) ** -12
    with mpmath.workdps(60):
        bend = mpmath.log(mpmath.besselk(h, 1.3) / mpmath.besselk(0, 1.3)) * 2 / h**2
    assert abs(evaluate(by_order(log_kv), 0.0, 1.3)) < 1e-15
    assert abs(evaluate(by_order(by_order(log_kv)), 0.0, 1.3) / float(bend) - 1) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("f", [log_iv, log_kv])
def test_third_and_mixed_derivatives(x64, f):
    v, x = np.array([0.3, 2.5, 7.0, 40.0, 24.0]), np.array([0.4, 3.0, 30.0, 2.0, 1.0])
    curve = jax.vmap(jax.value_and_grad(jax.grad(jax.grad(f, 1), 1), 1))
    one, other = jax.jacfwd(jax.jacrev(f, 0), 1), jax.jacrev(jax.jacfwd(f, 1), 0)
    near = np.concatenate([x, x * (1 + 1e-5), x * (1 - 1e-5)])
    with jax.disable_jit():  # to compile 60 000 operations takes minutes
        second, third = curve(np.tile(v, 3), near)
        mixed = jax.vmap(other)(v, x)
    slope = (second[5:10] - second[10:]) / (2e-5 * x)
    np.testing.assert_allclose(third[:5], slope, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(one))(v, x), mixed, rtol=1e-9)


@pytest.mark.slow
def test_derivatives_at_limits_are_limits():
    v, x = np.array([0.0, 2.0, 2.0, 1.0]), np.array([0.0, 0.0, np.inf, -1.0])
    np.testing.assert_array_equal(evaluate(by_argument(first), v, x), [0, np.inf, 1, np.nan])
    np.testing.assert_array_equal(evaluate(by_order(first), v, x), [-np.inf, -np.inf, 0, np.nan])
    np.testing.assert_array_equal(
        evaluate(by_argument(second), v, x), [-np.inf, -np.inf, -1, np.nan]
    )
    np.testing.assert_array_equal(evaluate(by_order(second), v, x), [0, np.inf, 0, np.nan])
