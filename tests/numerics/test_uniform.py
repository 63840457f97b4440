"""The uniform expansion against mpmath on the edge of its range and far out."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxgpu.numerics.disk import DOUBLE
from jaxgpu.numerics.uniform import angle, horner, order_slope, polar, ratio, slope

K = DOUBLE.uniform


def points():
    turn = np.linspace(0, 1, 9) * np.pi / 2
    s = np.array([24.0, 40.0, 1e3])[:, None]
    return (s * np.sin(turn)).ravel(), (s * np.cos(turn)).ravel() + 1e-3


@pytest.mark.parametrize("sign, name", [(1, "besseli"), (-1, "besselk")])
def test_slopes_and_ratio(x64, sign, name):
    v, x = points()
    got = [
        np.asarray(f(jnp.asarray(v), jnp.asarray(x), K, sign)) for f in (slope, order_slope, ratio)
    ]
    bessel, h = getattr(mpmath, name), mpmath.mpf(10) ** -25
    with mpmath.workdps(300):
        for i, (a, b) in enumerate(zip(v, x)):
            a, b = mpmath.mpf(a), mpmath.mpf(b)
            log = lambda p, q: mpmath.log(bessel(p, q))
            by_x = (log(a, b + h) - log(a, b - h)) / (2 * h)
            by_v = (log(a + h, b) - log(a - h, b)) / (2 * h)
            want = [float(by_x), float(by_v), float(bessel(a + 1, b) / bessel(a, b))]
            np.testing.assert_allclose([g[i] for g in got], want, rtol=2e-15, atol=1e-15)


def test_nothing_overflows(x64):
    top = np.finfo(float).max
    v, x = jnp.array([top, top, 1.0]), jnp.array([top, 1.0, top])
    p = polar(v, x)
    np.testing.assert_allclose(p.s / (top * p.scale), [np.sqrt(2), 1, 1], rtol=1e-15)
    np.testing.assert_allclose(angle(v, x), [np.arcsinh(1), np.log(2) + np.log(top), 0])
    far = angle(jnp.array([top, 1e300]), jnp.array([2.3e-308, 1e-300]))
    want = [np.log(2) + np.log(top) - np.log(2.3e-308), np.log(2) + 600 * np.log(10)]
    np.testing.assert_allclose(far, want, rtol=1e-15)


def test_angle_keeps_its_digits_and_its_derivatives(x64):
    v, x = np.array([1e-9, 0.3, 1.0, 7.0, 1e12]), np.array([1.0, 5.0, 1.0, 2.0, 3.0])
    with mpmath.workdps(40):
        want = [float(mpmath.asinh(mpmath.mpf(a) / mpmath.mpf(b))) for a, b in zip(v, x)]
    np.testing.assert_allclose(angle(jnp.asarray(v), jnp.asarray(x)), want, rtol=4e-16)
    by_v, by_x = jax.vmap(jax.grad(angle, (0, 1)))(v, x)
    s = np.hypot(v, x)
    np.testing.assert_allclose(by_v, 1 / s, rtol=4e-16)
    np.testing.assert_allclose(by_x, -v / (x * s), rtol=1e-15)


def test_horner():
    assert horner((1.0, 2.0, 3.0), jnp.float32(2)) == 17
