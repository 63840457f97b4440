"""The Matern covariance against closed forms, mpmath and its limits at zero distance."""

import jax
import mpmath
import numpy as np
import pytest

from jaxgpu.numerics import matern

R = np.array([1e-8, 1e-3, 0.3, 1.0, 4.0, 30.0])


def exact(r, v):
    r, v = mpmath.mpf(r), mpmath.mpf(v)
    x = mpmath.sqrt(2 * v) * r
    return 2 ** (1 - v) / mpmath.gamma(v) * x**v * mpmath.besselk(v, x)


@jax.jit
def _program(*arguments):
    """Compute values and derivatives in the distance, the smoothness and the length."""
    return jax.vmap(jax.value_and_grad(matern, (0, 1, 2)))(*arguments)


def evaluate(r, v, length, dtype=np.float64):
    """Compute the covariance and its three derivatives by one program for all shapes."""
    r, v, length = np.broadcast_arrays(r, v, length)
    rows = [np.pad(np.ravel(a), (0, -a.size % 64), constant_values=1) for a in (r, v, length)]
    with jax.enable_x64(dtype == np.float64):
        blocks = zip(*(a.astype(dtype).reshape(-1, 64) for a in rows))
        found = [jax.tree.leaves(_program(*block)) for block in blocks]
    assert all(a.dtype == dtype for a in found[0])
    return [np.concatenate(a)[: r.size].reshape(r.shape) for a in zip(*found)]


@pytest.mark.slow
def test_half_integers_in_closed_form():
    closed = {0.5: lambda x: 1, 1.5: lambda x: 1 + x, 2.5: lambda x: 1 + x + x * x / 3}
    for v, polynomial in closed.items():
        x = np.sqrt(2 * v) * R / 0.7
        np.testing.assert_allclose(evaluate(R, v, 0.7)[0], polynomial(x) * np.exp(-x), rtol=3e-14)


def test_any_smoothness_and_its_derivative():
    v = np.array([0.2, 0.8, 1.0, 3.3, 23.9, 24.1, 300.0])
    for r in (0.3, 1.0, 4.0):
        value, _, slope, _ = evaluate(r, v, 1.0)
        with mpmath.workdps(60):
            h = mpmath.mpf(10) ** -20
            want = [float(exact(r, a)) for a in v]
            rise = [
                float((exact(r, a + h) - exact(r, a - h)) / (2 * h)) for a in map(mpmath.mpf, v)
            ]
        np.testing.assert_allclose(value, want, rtol=2e-14)
        np.testing.assert_allclose(slope, rise, rtol=1e-11, atol=2e-14)


@pytest.mark.parametrize("dtype", [pytest.param(np.float64, marks=pytest.mark.slow), np.float32])
def test_derivatives_at_zero_distance(dtype):
    """k = 1 - c r^(2 v) - v r^2 / (2 (v - 1) length^2) + ..., and exp(-r / length) for v = 1/2."""
    v = np.array([0.3, 0.5, 0.75, 1.0, 1.2, 40.0])
    value, by_r, by_v, by_length = evaluate(0.0, v, 2.0, dtype)
    np.testing.assert_array_equal(by_r, [-np.inf, -0.5, 0, 0, 0, 0])
    np.testing.assert_array_equal([by_v, by_length], np.zeros((2, 6)))
    assert np.all(value == 1)


@pytest.mark.slow
def test_second_derivatives_at_zero_distance_and_close_to_it(x64):
    """Test in the distance and mixed with the smoothness, at low, medium and high smoothness."""
    slopes = jax.jit(jax.vmap(jax.grad(jax.grad(matern), (0, 1))))
    v, r = np.array([0.3, 0.5, 0.75, 1.0, 1.2, 7.3]), mpmath.mpf(1e-4)
    twice, mixed = slopes(np.repeat([0.0, 1e-32, float(r)], 6), np.tile(v, 3))
    limit = [np.inf, 1, -np.inf, -np.inf, -6, -73 / 63]
    np.testing.assert_allclose(twice[:6], limit, rtol=1e-15)
    # The next term is of order r^(2 v - 2): 1e-12 compared with 6.
    np.testing.assert_allclose(twice[10:12], limit[4:], rtol=1e-11)
    with mpmath.workdps(60):
        h, e = r * mpmath.mpf(10) ** -12, mpmath.mpf(10) ** -15
        bend = lambda a: (exact(r + h, a) - 2 * exact(r, a) + exact(r - h, a)) / h**2
        rise = lambda a: (exact(r + h, a) - exact(r - h, a)) / (2 * h)
        orders = [mpmath.mpf(a) for a in v]
        want = [float(bend(a)) for a in orders]
        want_mixed = [float((rise(a + e) - rise(a - e)) / (2 * e)) for a in orders]
    # For the exponential, v = 1/2, it is a difference of terms in log r / r.
    np.testing.assert_allclose(twice[12:], want, rtol=1e-11)
    np.testing.assert_allclose(mixed[12:], want_mixed, rtol=1e-12)


def test_is_positive_definite():
    x = np.random.default_rng(0).uniform(0, 5, (60, 2))
    r = np.linalg.norm(x[:, None] - x[None], axis=-1)
    assert np.linalg.eigvalsh(evaluate(r, 1.3, 1.0)[0]).min() > -1e-13


def test_far_away_nothing_is_left_and_what_has_no_answer_is_nan():
    """The former result was nan at r = inf, and 1 at r = length = inf."""
    inf, nan = np.inf, np.nan
    rows = [(inf, 1, 1), (1e30, 1, 1e-30), (1, 1, inf)]  # distance, smoothness, length
    rows += [(inf, 1, inf), (nan, 1, 1), (1, nan, 1), (1, 1, nan), (-1, 1, 1), (1, 0, 1), (1, 1, 0)]
    rows += [(1, 1, -1)]
    got, slope, _, _ = evaluate(*np.array(rows).T, np.float32)
    np.testing.assert_array_equal(got, [0, 0, 1, *[nan] * 8])
    assert np.all(slope[:2] == 0)


def test_what_cannot_be_answered_is_named_as_in_the_call():
    with pytest.raises(
        ValueError, match=r"matern: r has shape \(3,\), .* length has shape \(4,\);"
    ):
        matern(np.ones(3), 1.0, np.ones(4))
    with pytest.raises(TypeError, match="matern: length is <U.; it must be real numbers"):
        matern(1.0, 1.0, "long")
    with pytest.raises(
        TypeError, match="matern: smoothness is complex128; it must be real numbers"
    ):
        matern(1.0, np.array([1j]))
