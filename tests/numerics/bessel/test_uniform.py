"""The uniform expansion against mpmath, on the edge of its range and far outside."""

import mpmath
import numpy as np
import pytest
from bessel_table import argument_slope, evaluate, order_slope

from jaxgpu.numerics.bessel import debye
from jaxgpu.numerics.bessel.debye import BesselKind, polar


def angle(v, x):
    return polar(v, x)[2]


def tilt(v, x):
    return polar(v, x)[3]


def slopes(v, x):
    return [by(f)(v, x) for f in (angle, tilt) for by in (order_slope, argument_slope)]


@pytest.mark.parametrize("sign", [1, -1])
def test_slopes_and_ratio(sign):
    turn = np.linspace(0.1, 1, 4) * np.pi / 2
    v, x = (np.outer([24.0, 100.0], f(turn)).ravel() for f in (np.sin, np.cos))
    v, x, kind = v, x + 1e-3, BesselKind(sign)
    value = lambda v, x: debye.log_bessel(kind, v, x)
    slope_pair = lambda v, x: (debye.derivative(kind, v, x), order_slope(value)(v, x))
    forms = lambda v, x: (value(v, x), *slope_pair(v, x), debye.ratio(kind, v, x))
    got = evaluate(forms, v, x)
    bessel, h = mpmath.besseli if sign > 0 else mpmath.besselk, mpmath.mpf(10) ** -20
    with mpmath.workdps(120):
        log = lambda p, q: mpmath.log(bessel(p, q))
        for i, (a, b) in enumerate(zip(map(mpmath.mpf, v), map(mpmath.mpf, x))):
            by_x = (log(a, b + h) - log(a, b - h)) / (2 * h)
            by_v = (log(a + h, b) - log(a - h, b)) / (2 * h)
            want = [log(a, b), by_x, by_v, bessel(a + 1, b) / bessel(a, b)]
            size = [float(a + b), 1, 1, 0]
            bound = [3e-15 * abs(float(y)) + 5e-16 * z for y, z in zip(want, size)]
            assert np.all(np.abs([g[i] - float(y) for g, y in zip(got, want)]) <= bound)


def test_nothing_overflows():
    top, least = np.finfo(float).max, np.finfo(float).tiny
    v, x = np.array([top, top, 1.0, top, 1e300]), np.array([top, 1.0, top, least, 1e-300])
    half, log_half, turn, tilt = evaluate(polar, v, x)
    np.testing.assert_allclose(half / (top / 2), [np.sqrt(2), 1, 1, 1, 1e300 / top], rtol=1e-15)
    np.testing.assert_allclose(log_half, np.log(half), rtol=1e-15)
    want = [np.arcsinh(1), np.log(2) + np.log(top), 1 / top, 0, np.log(2) + 600 * np.log(10)]
    want[3] = np.log(2) + np.log(top) - np.log(least)
    np.testing.assert_allclose(turn, want, rtol=1e-15, atol=1e-300)
    np.testing.assert_allclose(tilt, [np.sqrt(2) - 1, 0, 1, 0, 0], rtol=1e-15, atol=1e-300)
    value = evaluate(lambda v, x: debye.log_bessel(BesselKind(1), v, x), v[[0, 2]], x[[0, 2]])
    np.testing.assert_allclose(value, [top * (np.sqrt(2) - np.arcsinh(1)), top], rtol=1e-15)


def test_angles_keep_their_digits_and_their_derivatives():
    v, x = np.array([1e-9, 0.3, 1.0, 7.0, 1e12]), np.array([1.0, 5.0, 1.0, 2.0, 3.0])
    with mpmath.workdps(40):
        want = [float(mpmath.asinh(mpmath.mpf(a) / mpmath.mpf(b))) for a, b in zip(v, x)]
    _, _, turn, lean = evaluate(polar, v, x)
    np.testing.assert_allclose(turn, want, rtol=5e-16)
    np.testing.assert_allclose(lean, np.exp(-np.array(want)), rtol=1e-14)
    s = np.hypot(v, x)
    turn_v, turn_x, _, lean_x = evaluate(slopes, v, x)
    np.testing.assert_allclose(turn_v, 1 / s, rtol=5e-16)
    np.testing.assert_allclose(turn_x, -v / (x * s), rtol=1e-15)
    np.testing.assert_allclose(lean_x, v / (s * (v + s)), rtol=1e-15)
