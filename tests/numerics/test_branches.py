"""Derivatives of log I and log K in order and argument, of first and second order."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from bessel_table import shipped, worst

from jaxgpu.numerics.bessel import log_iv, log_kv
from jaxgpu.numerics.branches import log_half_of, reflection_weights, split


def derivative(f, argument, table, dtype):
    with np.errstate(over="ignore", under="ignore"):
        v, x = (jnp.asarray(table[c].astype(dtype)) for c in "vx")

    def change(v, x):
        if argument == "v":
            return jax.jvp(lambda v: f(v, x), (v,), (jnp.ones_like(v),))[1]
        return jax.jvp(lambda x: f(v, x), (x,), (jnp.ones_like(x),))[1]

    return jax.jit(change)(v, x)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f, column", [(log_iv, "dlogiv_dv"), (log_kv, "dlogkv_dv")])
def test_derivative_in_the_order(f, column, dtype):
    table = shipped()
    rows = table.points(dtype)
    with jax.enable_x64(dtype == np.float64):
        got = derivative(f, "v", table, dtype)
    error = table.error(column, got, np.maximum(1, np.abs(table[column])), dtype)
    # the largest seen: 48 in float64, 24 in float32
    assert error[rows].max() <= 64, worst(table, error, rows)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f, column, sign", [(log_iv, "ratio_i", 1), (log_kv, "ratio_k", -1)])
def test_derivative_in_the_argument(f, column, sign, dtype):
    table = shipped()
    with np.errstate(all="ignore"):
        exact = table["v"] / table["x"] + sign * table[column]
    rows = table.points(dtype) & (np.abs(exact) < np.finfo(dtype).max)
    rows &= np.abs(table[column]) < np.finfo(np.float64).max
    with jax.enable_x64(dtype == np.float64):
        got = np.asarray(derivative(f, "x", table, dtype), np.float64)
    with np.errstate(invalid="ignore"):
        error = np.abs(got - exact) / (0.5 * np.finfo(dtype).eps * np.maximum(1, np.abs(exact)))
    # the largest seen: 9.6 in float64, 9.0 in float32
    assert error[rows].max() <= 16, worst(table, error, rows)


@pytest.mark.parametrize("f, column, sign", [(log_iv, "ratio_i", 1), (log_kv, "ratio_k", -1)])
def test_second_derivative_in_the_argument(x64, f, column, sign):
    """Bessel's equation gives it from the first, but for the digits that this costs the table."""
    table = shipped()
    usual = (table["x"] > 1e-100) & (table["x"] < 1e100) & (table["v"] < 1e100)
    v, x = table["v"][usual], table["x"][usual]
    got = jax.jit(jax.vmap(jax.grad(jax.grad(f, 1), 1)))(v, x)
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


@pytest.mark.parametrize("f, name", [(log_iv, "besseli"), (log_kv, "besselk")])
def test_derivatives_at_ties_and_zero(x64, f, name):
    """v = x, where a maximum would be halved, and v = 0, where an absolute value would be."""
    at = np.array([0.7, 5.0, 30.0, 700.0])
    got = jax.jit(jax.vmap(jax.grad(f, (0, 1))))(at, at)
    bessel, h = getattr(mpmath, name), mpmath.mpf(10) ** -20
    with mpmath.workdps(60):
        for i, a in enumerate(at):
            log = lambda v, x: mpmath.log(bessel(v, x))
            by_v = (log(a + h, a) - log(a - h, a)) / (2 * h)
            by_x = (log(a, a + h) - log(a, a - h)) / (2 * h)
            np.testing.assert_allclose([g[i] for g in got], [float(by_v), float(by_x)], rtol=1e-14)
        if f is log_kv:
            h = mpmath.mpf(10) ** -12
            bend = mpmath.log(bessel(h, 1.3) / bessel(0, 1.3)) * 2 / h**2
            first, second = jax.jit(jax.value_and_grad(jax.grad(log_kv)))(0.0, 1.3)
            assert abs(first) < 1e-15 and abs(second / float(bend) - 1) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("f", [log_iv, log_kv])
def test_third_and_mixed_derivatives(x64, f):
    v, x = np.array([0.3, 2.5, 7.0, 40.0, 24.0]), np.array([0.4, 3.0, 30.0, 2.0, 1.0])
    curve = jax.jit(jax.vmap(jax.value_and_grad(jax.grad(jax.grad(f, 1), 1), 1)))
    second = [curve(v, x * (1 + sign * 1e-5))[0] for sign in (1, -1)]
    slope = (second[0] - second[1]) / (2e-5 * x)
    np.testing.assert_allclose(curve(v, x)[1], slope, rtol=1e-6)
    one, other = jax.jacfwd(jax.jacrev(f, 0), 1), jax.jacrev(jax.jacfwd(f, 1), 0)
    mixed = jax.jit(jax.vmap(lambda v, x: (one(v, x), other(v, x))))(v, x)
    np.testing.assert_allclose(mixed[0], mixed[1], rtol=1e-9)


def test_derivatives_at_limits_are_limits():
    v, x = jnp.array([0.0, 2.0, 2.0, 1.0]), jnp.array([0.0, 0.0, jnp.inf, -1.0])
    order, slope = jax.jit(jax.vmap(jax.grad(log_iv, (0, 1))))(v, x)
    np.testing.assert_array_equal(slope, [0, np.inf, 1, np.nan])
    np.testing.assert_array_equal(order, [-np.inf, -np.inf, 0, np.nan])
    order, slope = jax.jit(jax.vmap(jax.grad(log_kv, (0, 1))))(v, x)
    np.testing.assert_array_equal(slope, [-np.inf, -np.inf, -1, np.nan])
    np.testing.assert_array_equal(order, [0, np.inf, 0, np.nan])


def test_the_cut_keeps_each_side_harmless():
    v, x = jnp.array([0.0, 30.0, jnp.nan]), jnp.array([1.0, 1.0, 1.0])
    inside, inner, outer = split(v, x)
    assert inside.tolist() == [True, False, False]
    assert inner[0].tolist() == [0.0, 1.0, 1.0] and outer[0].tolist() == [10.0, 30.0, 10.0]
    assert split(v, 0 * x, origin=True)[0].tolist() == [True, False, False]


def test_weights_of_a_reflection(x64):
    m, x = np.array([0.3, 1.5, 2.0, 4.7]), np.array([0.1, 2.0, 3.0, 9.0])
    first, second, lead = reflection_weights(jnp.asarray(m), jnp.asarray(x))
    with mpmath.workdps(40):
        want = [float(mpmath.besseli(-a, b) / mpmath.besseli(a, b)) for a, b in zip(m, x)]
    np.testing.assert_allclose((first + second) * np.exp(lead), want, rtol=1e-13)
    np.testing.assert_allclose(log_half_of(jnp.asarray(3e-308)), np.log(1.5e-308), rtol=1e-15)
