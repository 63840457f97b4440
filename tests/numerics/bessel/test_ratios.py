"""Ratios of neighbouring orders and the inverse of one, against mpmath.

The rows of the tables are in test_logarithms.py.
"""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from bessel_table import argument_slope, evaluate, family

from jaxgpu.numerics import iv_ratio, iv_ratio_inverse


def inverse(v, r):
    """Compute the inverse and its derivatives in both arguments in one program."""
    by_v, by_r = (jnp.ones_like(v), jnp.zeros_like(r)), (jnp.zeros_like(v), jnp.ones_like(r))
    value, slope_v = jax.jvp(iv_ratio_inverse, (v, r), by_v)
    return value, slope_v, jax.jvp(iv_ratio_inverse, (v, r), by_r)[1]


PRECISIONS = [
    pytest.param(np.float64, id="float64", marks=pytest.mark.slow),
    pytest.param(np.float32, id="float32"),
]


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_negative_orders(dtype):
    v = -np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.625, 3.0, 4.25])
    x = np.array([0.5, 3.0, 20.0, 50.0])
    first, second = (
        evaluate(family(kind), v[:, None], x[None], dtype)[f"ratio_{kind}"] for kind in "ik"
    )
    u = np.finfo(dtype).eps / 2
    with mpmath.workdps(60):
        for i, a in enumerate(map(mpmath.mpf, v)):
            for j, b in enumerate(x):
                i_ratio = mpmath.besseli(a + 1, b) / mpmath.besseli(a, b)
                k_ratio = mpmath.besselk(a + 1, b) / mpmath.besselk(a, b)
                # I of a negative order is I of the positive order plus a multiple of K.
                parts = [mpmath.besseli(-n, b) / mpmath.besseli(n, b) for n in (a, a + 1)]
                lost = sum(1 + 2 * abs(part) for part in parts) if a <= -1 else 1
                # Ratios come from logarithms of size b at most, or from -log K of b and of the
                # order.
                size = 1 + b + abs(a) * abs(mpmath.log(b / 2))
                assert abs(first[i, j] / float(i_ratio) - 1) < 8 * u * float(lost * size)
                assert abs(second[i, j] / float(k_ratio) - 1) < 16 * u


@pytest.mark.slow
def test_limits_and_smoothness_at_zero():
    v = np.array([0.0, 0.5, 30.0, -0.3])
    first, second = (
        evaluate(family(kind), v[:, None], np.array([0.0, np.inf]))[f"ratio_{kind}"].T
        for kind in "ik"
    )
    np.testing.assert_array_equal(first, [[0.0] * 4, [1.0] * 4])
    np.testing.assert_array_equal(second, [[np.inf] * 4, [1.0] * 4])
    half = evaluate(family("k"), -0.5, np.array([0.0, 3.0]))["ratio_k"]
    np.testing.assert_allclose(half, 1.0, rtol=1e-15)
    slope = evaluate(argument_slope(iv_ratio), v, 0.0)
    np.testing.assert_allclose(slope, 1 / (2 * v + 2), rtol=1e-15)


def test_derivative_keeps_its_digits_where_riccati_s_equation_loses_them():
    v, x = np.array([0.0, 0.5, 10.0, 400.0, 30.0]), np.array([1e6, 1e5, 1e7, 1e9, 0.01])
    got = evaluate(argument_slope(iv_ratio), v, x)
    with mpmath.workdps(60):
        for i, (a, b) in enumerate(zip(map(mpmath.mpf, v), map(mpmath.mpf, x))):
            r = mpmath.besseli(a + 1, b, maxterms=10**7) / mpmath.besseli(a, b, maxterms=10**7)
            assert abs(got[i] / float(1 - r * r - (2 * a + 1) / b * r) - 1) < 1e-12


@pytest.mark.slow
def test_the_inverse_is_one():
    """Expect a relative error of x of 1e-14 times the condition number r / (x dr/dx)."""
    v = np.array([2, 3, 5, 64, 784, 32768, 131072])[:, None] / 2 - 1
    x = np.geomspace(1e-6, 1e6, 40) * (2 * v + 2)
    r, slope = evaluate(family("i"), v, x)["ratio_i"], evaluate(argument_slope(iv_ratio), v, x)
    got, _, _ = evaluate(inverse, v, r)
    bound = 1e-14 * np.maximum(1, r / (x * slope))
    use = r < 1 - 1e-9
    assert use.sum() > 250 and np.all(np.abs(got / x - 1)[use] <= bound[use])


def test_the_inverse_where_the_ratio_is_one_but_for_its_last_digits():
    """Compare with x = (v + 1/2) / (1 - r) (1 + O(1 - r)), with 1 - r exact, in all orders."""
    v = np.arange(0, 60, 0.5, dtype=np.float32)[:, None]
    rest = np.float32(2.0**-24) * np.array([1, 2, 5, 40, 300], np.float32)
    got = evaluate(iv_ratio_inverse, v, 1 - rest, np.float32)
    # Below 300 ulp Newton's steps may be rejected; above, u / (1 - r) is their error.
    np.testing.assert_allclose(got, (v + 0.5) / rest, rtol=2e-3)


def test_an_inverse_whose_order_is_known(x64):
    r = np.linspace(0.01, 0.99, 50)
    known = jax.jit(lambda r: iv_ratio_inverse(391.0, r))(r)
    np.testing.assert_allclose(known, evaluate(inverse, 391.0, r)[0], rtol=2e-14)


def test_inverse_at_its_limits_and_its_derivatives():
    r = np.array([0.0, 1.0, -0.1, 1.1, np.nan])
    got, _, _ = evaluate(inverse, 1.5, r)
    np.testing.assert_array_equal(got, [0, np.inf, np.nan, np.nan, np.nan])
    v, r, h = np.array([0.5, 40.0]), np.array([0.3, 0.6]), 1e-6
    _, by_v, by_r = evaluate(inverse, v, r)
    near, _, _ = evaluate(inverse, v, r + h * np.array([[1], [-1]]))
    np.testing.assert_allclose(by_r, (near[0] - near[1]) / (2 * h), rtol=1e-7)
    near, _, _ = evaluate(inverse, v + h * np.array([[1], [-1]]), r)
    np.testing.assert_allclose(by_v, (near[0] - near[1]) / (2 * h), rtol=1e-7)


def test_ratios_at_infinity():
    """The ratio is 1 at infinite argument, also if both are infinite, and 0 at infinite order."""
    v, x = np.float32([[0.0, 2.5, np.inf], [np.inf, np.inf, 3.0]])
    np.testing.assert_array_equal(jax.jit(iv_ratio)(v, x), [1, 1, 0])


def test_the_inverse_is_one_in_float32():
    v, x = np.float32([0.0, 1.5, 40.0]), np.float32([0.3, 3.0, 60.0])
    again = jax.jit(lambda v, x: iv_ratio_inverse(v, iv_ratio(v, x)))(v, x)
    np.testing.assert_allclose(again, x, rtol=1e-5)
