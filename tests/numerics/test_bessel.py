"""log I and log K against 25-digit tables, mpmath, and the identities they obey."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from bessel_table import shipped, worst
from conformance import check

from jaxgpu.numerics.bessel import log_iv, log_ive, log_kv, log_kve

# bounds of the condition-aware error; the largest seen are 1.56, 3.09 and 1.32, 1.64
BOUNDS = {(log_iv, np.float64): 2, (log_kv, np.float64): 4}
BOUNDS |= {(log_iv, np.float32): 2, (log_kv, np.float32): 3}


FAST = jax.jit(log_iv), jax.jit(log_kv)


@pytest.mark.parametrize("f, dtype", BOUNDS, ids=lambda p: p.__name__)
def test_every_row_of_the_table(f, dtype):
    table = shipped()
    rows = table.points(dtype)
    with np.errstate(over="ignore", under="ignore"):
        v, x = table["v"].astype(dtype), table["x"].astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        got = jax.jit(f)(v, x)
    assert got.dtype == dtype
    error = table.error(f.__name__, got, table.condition(f.__name__), dtype)
    assert error[rows].max() <= BOUNDS[f, dtype], worst(table, error, rows)


@pytest.mark.parametrize("f, plain, sign", [(log_ive, log_iv, 1), (log_kve, log_kv, -1)])
def test_scaled_functions_lose_nothing_where_the_plain_ones_are_large(x64, f, plain, sign):
    v = np.array([0.0, 0.3, 2.5, 30.0, 1000.0])[:, None]
    x = np.array([1e-3, 0.7, 5.0, 23.0, 40.0, 1e3, 1e8, 1e15])[None]
    with mpmath.workdps(60):
        bessel = mpmath.besseli if sign > 0 else mpmath.besselk
        exact = [
            [float(mpmath.log(bessel(a, b)) - sign * mpmath.mpf(b)) for b in x[0]] for a in v[:, 0]
        ]
    # the plain function's own rounding is all that may be seen where it is small
    bound = 4e-16 * (np.abs(exact) + np.where(x < 24, x, 1) + v)
    assert np.all(np.abs(np.asarray(f(v, x)) - exact) <= bound)


LIMITS = [  # v, x, log I, log K
    (0.0, 0.0, 0.0, np.inf),
    (2.5, 0.0, -np.inf, np.inf),
    (0.0, np.inf, np.inf, -np.inf),
    (3.0, np.inf, np.inf, -np.inf),
    (np.inf, 1.0, -np.inf, np.inf),
    (np.inf, 0.0, -np.inf, np.inf),
    (np.inf, np.inf, np.nan, np.nan),
    (np.nan, 1.0, np.nan, np.nan),
    (1.0, np.nan, np.nan, np.nan),
    (1.0, -1.0, np.nan, np.nan),
    (-3.0, 0.0, -np.inf, np.inf),
    (0.0, 1e-310, 0.0, np.inf),  # subnormal: flushed to zero
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_limits(dtype):
    v, x, first, second = np.array(LIMITS).T
    with np.errstate(under="ignore"):
        v, x = v.astype(dtype), x.astype(dtype)
    np.testing.assert_array_equal(log_iv(v, x), first)
    np.testing.assert_array_equal(log_kv(v, x), second)


def test_negative_orders(x64):
    v = -np.array([0.3, 0.5, 1.0, 1.5, 2.7, 3.0, 4.2, 30.3, 31.6, 100.5])
    x = np.array([0.01, 0.9, 3.0, 20.0, 50.0])
    with mpmath.workdps(60):
        values = [[mpmath.besseli(a, b) for b in x] for a in v]
        exact = [[float(mpmath.log(y)) if y > 0 else np.nan for y in row] for row in values]
    got = np.asarray(log_iv(v[:, None], x[None]))
    # I_{-v} is a difference where it is small: the bound is that of its two terms
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    np.testing.assert_allclose(got, exact, rtol=5e-14, atol=5e-14)
    np.testing.assert_array_equal(log_kv(v, 2.0), log_kv(-v, 2.0))


def test_identities(x64):
    rng = np.random.default_rng(1)
    v, x = rng.uniform(0, 200, 2000), 10 ** rng.uniform(-3, 2.5, 2000)
    i, k = (f(v + np.arange(4.0)[:, None], np.broadcast_to(x, (4, 2000))) for f in FAST)
    # each logarithm is good to 4 u of its condition, of which this is a bound
    condition = (
        8 + np.abs(i).max(0) + np.abs(k).max(0) + 2 * x + (v + 4) * (1 + np.arcsinh((v + 4) / x))
    )
    u = 8 * 2.0**-53 * condition
    # Wronskian, DLMF 10.28.2: I_v K_{v+1} + I_{v+1} K_v = 1 / x
    assert np.all(np.abs(x * (np.exp(i[0] + k[1]) + np.exp(i[1] + k[0])) - 1) < u)
    # recurrences, DLMF 10.29.1
    assert np.all(np.abs(np.exp(i[2] - i[0]) + 2 * (v + 1) / x * np.exp(i[1] - i[0]) - 1) < u)
    assert np.all(np.abs(np.exp(k[0] - k[2]) + 2 * (v + 1) / x * np.exp(k[1] - k[2]) - 1) < u)
    # Turan's inequalities: I is log-concave in the order, K log-convex; and both are monotone
    assert np.all(2 * i[1] >= i[0] + i[2] - u) and np.all(2 * k[1] <= k[0] + k[2] + u)
    assert np.all(np.diff(i, axis=0) < u) and np.all(np.diff(k, axis=0) > -u)


@pytest.mark.parametrize("f", [log_iv, log_kv])
def test_no_jump_across_any_edge(x64, f):
    """Next to s = 24, x = 1, half-integer orders: neighbours differ by slope and rounding alone."""
    angle, line = np.linspace(0, np.pi / 2, 200), np.linspace(0.01, 20, 200)
    v = np.concatenate([24 * np.sin(angle), line, np.floor(line) + 0.5])
    x = np.concatenate([24 * np.cos(angle) + 1e-12, np.ones(200), line])
    value_and_slopes = jax.jit(jax.vmap(jax.value_and_grad(f, (0, 1))))
    step = 2e-15  # some ulp: enough to cross, too little to see curvature
    low, slopes = value_and_slopes(v, x)
    for dv, dx in ((0 * v, step * x), (step * (1 + v), 0 * x)):
        for sign in (1, -1):
            high, others = value_and_slopes(np.maximum(v + sign * dv, 0), x + sign * dx)
            rise = slopes[0] * (np.maximum(v + sign * dv, 0) - v) + slopes[1] * sign * dx
            scale = 1 + np.abs(low) + x + v * (1 + np.abs(np.log(x)))
            assert np.all(np.abs(high - low - rise) <= 8 * 2.0**-53 * scale)
            for a, b in zip(slopes, others):
                curve = 4 * step * (1 + v) * (1 + 1 / x)
                assert np.all(np.abs(a - b) <= 64 * 2.0**-53 * np.maximum(1, np.abs(a)) + curve)


def test_a_known_large_order_gives_the_same(x64):
    x = np.geomspace(1e-3, 1e6, 200)
    for f in (log_iv, log_kv, log_ive, log_kve):
        traced = f(jnp.full(200, 511.0), x)
        np.testing.assert_allclose(f(511.0, x), traced, rtol=4e-16)


@pytest.mark.parametrize("f", [log_iv, log_kv])
def test_the_same_bits_whatever_the_global_flag(f):
    v, x = np.linspace(0, 40, 50), np.geomspace(1e-3, 50, 50)
    off = f(v, x)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(off, f(v, x))
    assert off.dtype == np.float64


@pytest.mark.parametrize("f", [log_iv, log_kv])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_conformance(x64, f, dtype):
    v = jnp.array([0.0, 0.3, 2.5, 9.7, 23.0, 80.0], dtype)
    x = jnp.array([0.2, 3.0, 0.7, 12.0, 30.0, 5.0], dtype)
    rtol = 50 * float(jnp.finfo(dtype).eps)
    check(jax.jit(f), v, x, differentiable=(0, 1), batched=(0, 1), rtol=rtol)
    if f is log_kv and dtype == jnp.float32:
        np.testing.assert_allclose(f(v, x), jax.jit(f)(v, x), rtol=rtol)
