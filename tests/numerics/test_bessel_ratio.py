"""Ratios of neighbouring orders and the inverse of one, against the table and mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from bessel_table import shipped, worst
from conformance import check

from jaxgpu.numerics.bessel_ratio import iv_ratio, iv_ratio_inverse, kv_ratio


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f, column", [(iv_ratio, "ratio_i"), (kv_ratio, "ratio_k")])
def test_every_row_of_the_table(f, column, dtype):
    table, info = shipped(), np.finfo(dtype)
    size = np.abs(table[column])
    rows = table.points(dtype) & (size > info.tiny) & (size < info.max)
    with jax.enable_x64(dtype == np.float64), np.errstate(over="ignore", under="ignore"):
        got = jax.jit(f)(table["v"].astype(dtype), table["x"].astype(dtype))
    error = table.error(column, got, size, dtype)
    # the largest seen: 4.1 and 7.5 in float64, 4.1 and 6.3 in float32
    assert error[rows].max() <= 8, worst(table, error, rows)


def test_negative_orders(x64):
    v, x = -np.array([0.3, 0.5, 0.8, 1.0, 1.5, 2.7, 3.0, 4.2]), np.array([0.4, 3.0, 20.0, 50.0])
    first, second = (np.asarray(jax.jit(f)(v[:, None], x[None])) for f in (iv_ratio, kv_ratio))
    with mpmath.workdps(60):
        for i, a in enumerate(map(mpmath.mpf, v)):
            for j, b in enumerate(x):
                i_ratio = mpmath.besseli(a + 1, b) / mpmath.besseli(a, b)
                k_ratio = mpmath.besselk(a + 1, b) / mpmath.besselk(a, b)
                assert abs(first[i, j] / float(i_ratio) - 1) < 1e-12
                assert abs(second[i, j] / float(k_ratio) - 1) < 2e-15


def test_limits_and_smoothness_at_zero():
    v = jnp.array([0.0, 0.5, 30.0])
    np.testing.assert_array_equal(iv_ratio(v, 0.0), 0.0)
    np.testing.assert_array_equal(iv_ratio(v, jnp.inf), 1.0)
    np.testing.assert_array_equal(kv_ratio(v, jnp.inf), 1.0)
    np.testing.assert_array_equal(kv_ratio(v, 0.0), jnp.inf)
    assert jnp.isnan(iv_ratio(0.5, -1.0)) and jnp.isnan(kv_ratio(jnp.nan, 1.0))
    slope = jax.vmap(jax.grad(iv_ratio, 1), (0, None))(v, 0.0)
    np.testing.assert_allclose(slope, 1 / (2 * v + 2), rtol=1e-6)


def test_derivative_keeps_its_digits_where_riccati_s_equation_loses_them(x64):
    v, x = np.array([0.0, 0.5, 10.0, 400.0, 30.0]), np.array([1e6, 1e5, 1e7, 1e9, 0.01])
    got = jax.vmap(jax.grad(iv_ratio, 1))(v, x)
    with mpmath.workdps(60):
        for i, (a, b) in enumerate(zip(map(mpmath.mpf, v), map(mpmath.mpf, x))):
            r = mpmath.besseli(a + 1, b, maxterms=10**7) / mpmath.besseli(a, b, maxterms=10**7)
            assert abs(got[i] / float(1 - r * r - (2 * a + 1) / b * r) - 1) < 1e-12


@pytest.mark.parametrize("known", [False, True])
def test_the_inverse_is_one(x64, known):
    """x to 1e-14 relative, times the condition number r / (x dr/dx) of the question."""
    for d in (2, 3, 5, 64, 784, 32768, 131072):
        v = d / 2 - 1
        x = v_scale = np.geomspace(1e-6, 1e6, 40) * d
        r = np.asarray(iv_ratio(v, x))
        use = r < 1 - 1e-9
        order = v if known else jnp.full(use.sum(), v)
        got = np.asarray(iv_ratio_inverse(order, r[use]))
        slope = np.asarray(jax.vmap(jax.grad(iv_ratio, 1), (None, 0))(v, x))[use]
        condition = r[use] / (x[use] * slope)
        assert np.all(np.abs(got / x[use] - 1) <= 1e-14 * np.maximum(1, condition)), d
        assert len(v_scale) == 40


def test_inverse_at_its_limits_and_its_derivatives(x64):
    r = jnp.array([0.0, 1.0, -0.1, 1.1, jnp.nan])
    np.testing.assert_array_equal(iv_ratio_inverse(1.5, r), [0, np.inf, np.nan, np.nan, np.nan])
    for v, at in ((0.5, 0.3), (40.0, 0.6)):
        by_v, by_r = jax.grad(iv_ratio_inverse, (0, 1))(v, at)
        h = 1e-6
        near = iv_ratio_inverse(v + h * np.array([0, 0, 1, -1]), at + h * np.array([1, -1, 0, 0]))
        np.testing.assert_allclose(by_r, (near[0] - near[1]) / (2 * h), rtol=1e-7)
        np.testing.assert_allclose(by_v, (near[2] - near[3]) / (2 * h), rtol=1e-7)


@pytest.mark.parametrize("f", [iv_ratio, kv_ratio, iv_ratio_inverse])
def test_conformance(f):
    v = jnp.array([0.0, 0.3, 2.5, 9.7, 80.0])
    x = jnp.array([0.2, 0.3, 0.7, 0.9, 0.5])
    check(jax.jit(f), v, x, differentiable=(0, 1), batched=(0, 1), rtol=2e-5)
