"""The formulas near the origin, against mpmath."""

import mpmath
import numpy as np
import pytest
from bessel_table import evaluate

from jaxgpu.numerics.bessel import disk
from jaxgpu.numerics.bessel.debye import BesselKind

V = np.array([0.0, 1e-9, 0.3, 0.5, 1.0, 2.49, 2.51, 6.7])
X = np.array([1e-5, 0.2, 0.37, 0.38, 2.0, 6.9])
GRID = [a.ravel() for a in np.meshgrid(V, X)]
FIRST, SECOND = BesselKind(1), BesselKind(-1)


def tail(v, y):
    return disk.hyp0f1_series(v, y)[0]


def all_forms(v, x):
    """Compute log I, log K and the tail of the series in one program."""
    return disk.log_bessel(FIRST, v, x), disk.log_bessel(SECOND, v, x), tail(v, x)


@pytest.mark.parametrize("dtype, u", [(np.float64, 2.0**-53), (np.float32, 2.0**-24)])
def test_against_mpmath(dtype, u):
    v, x = (a.astype(dtype).astype(float) for a in GRID)
    first, second, sums = evaluate(all_forms, v, x, dtype)
    with mpmath.workdps(50):
        for i, (a, b) in enumerate(zip(map(mpmath.mpf, v), map(mpmath.mpf, x))):
            assert abs(sums[i] / float(mpmath.hyp0f1(a + 1, b) - 1) - 1) < 8 * u
            for got, bessel in ((first, mpmath.besseli), (second, mpmath.besselk)):
                size = abs(mpmath.log(b / 2)) * a + b + abs(mpmath.log(bessel(a, b)))
                assert abs(got[i] - float(mpmath.log(bessel(a, b)))) < 8 * u * float(size)


def test_a_series_of_any_order():
    v, y = np.array([1e3, 1e8, 1e12]), np.array([100.0, 144.0, 20.0])
    with mpmath.workdps(30):
        want = [float(mpmath.hyp0f1(mpmath.mpf(a) + 1, b) - 1) for a, b in zip(v, y)]
    np.testing.assert_allclose(evaluate(all_forms, v, y)[2], want, rtol=1e-15)


@pytest.mark.parametrize("field, less", [("temme", 2), ("series", 8)])
def test_every_number_of_terms_is_needed(monkeypatch, field, less):
    """Fewer nodes or terms give a visible error: the sizes are close to the minimum."""
    v, x = np.array([1.49, 1.49, 0.0]), np.array([0.374, 0.376, 23.9])
    kind = FIRST if field == "series" else SECOND
    full = evaluate(lambda v, x: disk.log_bessel(kind, v, x), v, x)
    fewer = disk.DOUBLE._replace(**{field: getattr(disk.DOUBLE, field) - less})
    monkeypatch.setattr(disk, "DOUBLE", fewer)
    assert np.abs(evaluate(lambda v, x: disk.log_bessel(kind, v, x), v, x) - full).max() > 2e-15


def test_gamma():
    v = np.array([0.0, 0.4, 0.5, 0.6, 3.3, 23.9])
    p, g, n = evaluate(lambda v, x: disk.gamma_parts(v), v, v)
    want = [float(mpmath.rgamma(1 + mpmath.mpf(a))) for a in v]
    np.testing.assert_allclose((1 + g) / p, want, rtol=1e-15)
    assert n.tolist() == [0, 0, 0, 1, 3, 24] and p[0] == 1


def test_log_half_where_half_would_underflow():
    x = np.array([3e-308, 1e-9, 3.0])
    want = [float(mpmath.log(mpmath.mpf(a) / 2)) for a in x]
    got = evaluate(lambda v, x: disk.log_half(x), x, x)
    np.testing.assert_allclose(got, want, rtol=2e-16)
