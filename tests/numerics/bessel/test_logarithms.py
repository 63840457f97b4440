"""log I and log K against 25-digit tables, mpmath, and their identities."""

import re
from pathlib import Path

import jax
import mpmath
import numpy as np
import pytest
from bessel_errors import DTYPES, QUANTITIES, errors, markdown, rows
from bessel_table import argument_slope, evaluate, family, load_tables, order_slope, worst

from jaxgpu.numerics import log_iv, log_ive, log_kv

# The first test in each precision compiles its programs, which takes many seconds in float64.
PRECISIONS = [
    pytest.param(np.float64, id="float64", marks=pytest.mark.slow),
    pytest.param(np.float32, id="float32"),
]
KINDS = [("i", 1), ("k", -1)]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda q: q.name)
def test_every_row_of_the_tables(quantity, dtype):
    error, known = errors(quantity, dtype, load_tables())
    bar = quantity.bars[DTYPES.index(dtype)]
    assert error[known].max() <= bar, worst(load_tables(), error, known)


def test_the_page_quotes_these_errors():
    page = Path(__file__).parents[3] / "docs" / "bessel.md"
    quoted = page.read_text().split("<!-- accuracy -->\n")[1].split("\n<!-- end")[0]
    measured = markdown(rows(load_tables()))
    number = r"\d+\.\d"
    assert re.sub(number, "", quoted) == re.sub(number, "", measured)
    pairs = zip(re.findall(number, quoted), re.findall(number, measured))
    # Another processor may contract other products: allow a third of the value, or one rounding.
    assert all(abs(float(a) - float(b)) <= max(1, float(b) / 3) for a, b in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("kind, sign", KINDS)
def test_scaled_functions_lose_nothing_where_the_plain_ones_are_large(kind, sign):
    v = np.array([0.0, 0.3, 2.5, 30.0, 1000.0])[:, None]
    x = np.array([1e-3, 0.7, 5.0, 23.0, 40.0, 1e3, 1e8, 1e15])[None]
    with mpmath.workdps(60):
        bessel = mpmath.besseli if sign > 0 else mpmath.besselk
        exact = [
            [float(mpmath.log(bessel(a, b)) - sign * mpmath.mpf(b)) for b in x[0]] for a in v[:, 0]
        ]
    got = evaluate(family(kind), v, x)
    # Where the plain function is small, only its own rounding may be visible.
    bound = 4e-16 * (np.abs(exact) + np.where(x < 24, x, 1) + v)
    assert np.all(np.abs(got[f"log_{kind}ve"] - exact) <= bound)
    slope, scaled = got[f"slope_{kind}"], got[f"slope_{kind}e"]
    bound = 32 * 2.0**-53 * np.maximum(1, np.abs(slope))
    assert np.all(np.abs(scaled - (slope - sign)) <= bound)


@pytest.mark.slow
@pytest.mark.parametrize("kind, f", [("i", log_iv), ("k", log_kv)])
def test_derivatives_of_the_public_functions_are_those_of_the_tables(kind, f):
    """The tables hold the derivatives without the branch of negative orders."""
    v = np.array([0.0, 0.3, 2.5, 23.0, 30.0, 1000.0])[:, None]
    x = np.array([1e-3, 0.3, 5.0, 23.9, 40.0, 1e4])
    known = evaluate(family(kind), v, x)
    by_v, by_x = evaluate(lambda v, x: (order_slope(f)(v, x), argument_slope(f)(v, x)), v, x)
    np.testing.assert_allclose(by_v, known[f"dlog{kind}v_dv"], rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(by_x, known[f"slope_{kind}"], rtol=1e-14)


LIMITS = [  # v, x, log I, log K
    (0.0, 0.0, 0.0, np.inf),
    (2.5, 0.0, -np.inf, np.inf),
    (40.0, 0.0, -np.inf, np.inf),
    (0.0, np.inf, np.inf, -np.inf),
    (3.0, np.inf, np.inf, -np.inf),
    (np.inf, 1.0, -np.inf, np.inf),
    (np.inf, 0.0, -np.inf, np.inf),
    (np.inf, np.inf, np.nan, np.nan),
    (-3.0, 0.0, -np.inf, np.inf),
    (-0.5, 0.0, np.inf, np.inf),  # I_{-1/2} = sqrt(2 / (pi x)) cosh x
    (-1.5, 0.0, np.nan, np.inf),  # and below it is negative there
    (-0.5, np.inf, np.inf, -np.inf),
]


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_limits(dtype):
    v, x, first, second = np.array(LIMITS).T
    np.testing.assert_array_equal(evaluate(family("i"), v, x, dtype)["log_iv"], first)
    np.testing.assert_array_equal(evaluate(family("k"), v, x, dtype)["log_kv"], second)


def test_negative_orders():
    v = -np.array([0.3, 0.5, 1.0, 1.5, 2.7, 3.0, 4.2, 30.3, 31.6, 100.5])
    x = np.array([0.01, 0.9, 3.0, 20.0, 50.0])
    with mpmath.workdps(60):
        values = [[mpmath.besseli(a, b) for b in x] for a in v]
        exact = [[float(mpmath.log(y)) if y > 0 else np.nan for y in row] for row in values]
    got = evaluate(family("i"), v[:, None], x[None])
    # I_{-v} is a difference where it is small: the bound is that of its two terms.
    np.testing.assert_array_equal(np.isnan(got["log_iv"]), np.isnan(exact))
    np.testing.assert_allclose(got["log_iv"], exact, rtol=5e-14, atol=5e-14)
    np.testing.assert_allclose(got["log_ive"], np.subtract(exact, x), rtol=5e-14, atol=5e-14)
    second = evaluate(family("k"), np.stack([v, -v]), 2.0)["log_kv"]
    np.testing.assert_array_equal(second[0], second[1])


def test_identities():
    rng = np.random.default_rng(1)
    v, x = rng.uniform(0, 200, 2000), 10 ** rng.uniform(-3, 2.5, 2000)
    orders = v + np.arange(4.0)[:, None]
    i, k = (evaluate(family(kind), orders, x)[f"log_{kind}v"] for kind in "ik")
    # Each logarithm is accurate to 4 u times its condition number, which this bounds.
    condition = (
        8 + np.abs(i).max(0) + np.abs(k).max(0) + 2 * x + (v + 4) * (1 + np.arcsinh((v + 4) / x))
    )
    u = 8 * 2.0**-53 * condition
    # Wronskian, DLMF 10.28.2: I_v K_{v+1} + I_{v+1} K_v = 1 / x
    assert np.all(np.abs(x * (np.exp(i[0] + k[1]) + np.exp(i[1] + k[0])) - 1) < u)
    # recurrences, DLMF 10.29.1
    assert np.all(np.abs(np.exp(i[2] - i[0]) + 2 * (v + 1) / x * np.exp(i[1] - i[0]) - 1) < u)
    assert np.all(np.abs(np.exp(k[0] - k[2]) + 2 * (v + 1) / x * np.exp(k[1] - k[2]) - 1) < u)
    # Turan's inequalities: I is log-concave in the order, K is log-convex. Both are monotone.
    assert np.all(2 * i[1] >= i[0] + i[2] - u) and np.all(2 * k[1] <= k[0] + k[2] + u)
    assert np.all(np.diff(i, axis=0) < u) and np.all(np.diff(k, axis=0) > -u)


@pytest.mark.parametrize("kind", ["i", "k"])
def test_no_jump_across_any_edge(kind):
    """Neighbours at s = 24, x = 3/8 and half-integer orders differ by slope and rounding only."""
    angle, line = np.linspace(0, np.pi / 2, 200), np.linspace(0.01, 20, 200)
    v = np.concatenate([24 * np.sin(angle), line, np.floor(line) + 0.5])
    x = np.concatenate([24 * np.cos(angle) + 1e-12, np.full(200, 0.375), line])
    names = f"log_{kind}v", f"dlog{kind}v_dv", f"slope_{kind}"
    value = lambda v, x: [evaluate(family(kind), v, x)[name] for name in names]
    step = 2e-15  # some ulp: enough to cross, too little to see curvature
    low, *slopes = value(v, x)
    for dv, dx in ((0 * v, step * x), (step * (1 + v), 0 * x)):
        for sign in (1, -1):
            beside = np.maximum(v + sign * dv, 0), x + sign * dx
            near, *others = value(*beside)
            rise = slopes[0] * (beside[0] - v) + slopes[1] * sign * dx
            scale = 1 + np.abs(low) + x + v * (1 + np.abs(np.log(x)))
            assert np.all(np.abs(near - low - rise) <= 8 * 2.0**-53 * scale)
            for a, b in zip(slopes, others):
                curve = 4 * step * (1 + v) * (1 + 1 / x)
                bound = 64 * 2.0**-53 * np.maximum(1, np.abs(a)) + curve
                assert np.all(np.abs(a - b) <= bound)


def test_a_known_large_order_gives_the_same(x64):
    """The larger the order, the fewer terms suffice: 15, 8 and 4 of them here."""
    x = np.geomspace(1e-3, 1e6, 200)
    known = jax.jit(lambda x: (log_iv(24.0, x), log_kv(60.0, x), log_ive(511.0, x)))(x)
    names = ("i", "log_iv", 24.0), ("k", "log_kv", 60.0), ("i", "log_ive", 511.0)
    for got, (kind, name, order) in zip(known, names):
        np.testing.assert_allclose(got, evaluate(family(kind), order, x)[name], rtol=6e-16)


def test_the_same_bits_whatever_the_global_flag():
    x = np.geomspace(1e-3, 50, 50)
    off = log_kv(600.0, x)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(off, log_kv(600.0, x))
    assert off.dtype == np.float64
