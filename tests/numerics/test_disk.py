"""The power series and the pair near the origin, against mpmath."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxgpu.numerics.branches import log_half_of
from jaxgpu.numerics.disk import DOUBLE, SINGLE, gamma_parts, log_series, pair, series

V = np.array([0.0, 1e-9, 0.3, 0.5, 1.0, 2.49, 2.51, 6.7])
X = np.array([1e-5, 0.2, 0.999, 1.0, 2.0, 6.9])
GRID = [a.ravel() for a in np.meshgrid(V, X)]


@pytest.mark.parametrize("size, u", [(DOUBLE, 2.0**-53), (SINGLE, 2.0**-24)], ids=["64", "32"])
def test_against_mpmath(x64, size, u):
    dtype = np.float64 if size is DOUBLE else np.float32
    v, x = (a.astype(dtype) for a in GRID)
    v_, x_ = jnp.asarray(v), jnp.asarray(x)
    tail, slope = series(v_, 0.25 * x_ * x_, size)
    part, fix = log_series(v_, x_, size)
    h, up, n = pair(v_, x_, log_half_of(x_), size)
    with mpmath.workdps(50):
        for i, (a, b) in enumerate(
            zip(map(mpmath.mpf, map(float, v)), map(mpmath.mpf, map(float, x)))
        ):
            y = b * b / 4
            f = mpmath.hyp0f1(a + 1, y)
            assert abs(tail[i] / float(f - 1) - 1) < 8 * u
            assert abs(slope[i] / float(mpmath.hyp0f1(a + 2, y) / f / (a + 1)) - 1) < 8 * u
            log = mpmath.log(mpmath.besseli(a, b) * (b / 2) ** -a)
            got = float(jnp.log(part[i]) + fix[i])
            assert abs(got - float(log)) < 8 * u * (abs(float(log)) + float(a + b) + 1e-300)
            grown = mpmath.exp(b) if b >= 1 else 1
            for got, m in ((h, 0), (up, 1)):
                want = float(grown * mpmath.besselk(a + m, b) * (b / 2) ** (float(n[i]) + m))
                assert abs(got[i] / want - 1) < 20 * u


def test_every_number_of_terms_is_needed(x64):
    """One fewer node or term is seen: the sizes are the least that do."""
    x = jnp.asarray(np.array([0.999, 1.0, 23.9, 23.9]))
    v = jnp.asarray(np.array([0.4, 0.4, 0.0, 1.0]))
    half = log_half_of(x)
    for less in ({"temme": DOUBLE.temme - 3}, {"nodes": DOUBLE.nodes - 5}):
        fewer = pair(v, x, half, DOUBLE._replace(**less))[0]
        assert np.abs(fewer / pair(v, x, half, DOUBLE)[0] - 1).max() > 1e-13
    fewer = series(v, 0.25 * x * x, DOUBLE._replace(series=DOUBLE.series - 8))[0]
    assert np.abs(fewer / series(v, 0.25 * x * x, DOUBLE)[0] - 1).max() > 1e-15


def test_gamma(x64):
    v = np.array([0.0, 0.4, 0.5, 0.6, 3.3, 23.9])
    p, g, n = gamma_parts(jnp.asarray(v), DOUBLE)
    want = [float(mpmath.rgamma(1 + mpmath.mpf(a))) for a in v]
    np.testing.assert_allclose((1 + g) / p, want, rtol=1e-15)
    assert n.tolist() == [0, 0, 0, 1, 3, 24] and p[0] == 1
