"""The Matern covariance against closed forms, mpmath and its limits at zero distance."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from conformance import check

from jaxgpu.numerics.matern import matern

R = np.array([1e-8, 1e-3, 0.3, 1.0, 4.0, 30.0])


def exact(r, v):
    r, v = mpmath.mpf(r), mpmath.mpf(v)
    x = mpmath.sqrt(2 * v) * r
    return 2 ** (1 - v) / mpmath.gamma(v) * x**v * mpmath.besselk(v, x)


def test_half_integers_in_closed_form(x64):
    closed = {0.5: lambda x: 1, 1.5: lambda x: 1 + x, 2.5: lambda x: 1 + x + x * x / 3}
    for v, polynomial in closed.items():
        x = np.sqrt(2 * v) * R / 0.7
        np.testing.assert_allclose(matern(R, v, 0.7), polynomial(x) * np.exp(-x), rtol=3e-14)


def test_any_smoothness_and_its_derivative(x64):
    v = np.array([0.2, 0.8, 1.0, 3.3, 23.9, 24.1, 300.0])
    both = jax.jit(jax.vmap(jax.value_and_grad(matern, 1), (None, 0)))
    for r in (0.3, 1.0, 4.0):
        value, slope = both(r, v)
        with mpmath.workdps(60):
            h = mpmath.mpf(10) ** -20
            want = [float(exact(r, a)) for a in v]
            rise = [
                float((exact(r, a + h) - exact(r, a - h)) / (2 * h)) for a in map(mpmath.mpf, v)
            ]
        np.testing.assert_allclose(value, want, rtol=2e-14)
        np.testing.assert_allclose(slope, rise, rtol=1e-11, atol=2e-14)


@pytest.mark.parametrize("v", [1.2, 40.0])
def test_derivatives_at_zero_distance(x64, v):
    first = jax.grad(matern)
    assert matern(0.0, v, 2.0) == 1 and first(0.0, v, 2.0) == 0
    second = jax.jit(jax.grad(first))
    np.testing.assert_allclose(second(0.0, v, 2.0), -v / (v - 1) / 4, rtol=1e-13)
    np.testing.assert_allclose(second(1e-9, v, 2.0), -v / (v - 1) / 4, rtol=1e-2)


def test_rough_ones_have_a_kink():
    slope = jax.jit(jax.vmap(jax.grad(matern), (None, 0)))(0.0, jnp.array([0.5, 0.8, 0.3]))
    np.testing.assert_allclose(slope, [-1, 0, -np.inf], rtol=1e-6)
    assert jnp.isnan(matern(-1.0, 1.0)) and jnp.isnan(matern(1.0, 0.0))


def test_is_positive_definite(x64):
    x = np.random.default_rng(0).uniform(0, 5, (60, 2))
    r = np.linalg.norm(x[:, None] - x[None], axis=-1)
    assert np.linalg.eigvalsh(matern(r, 1.3)).min() > -1e-13


def test_conformance():
    r, v = jnp.array([0.1, 1.0, 3.0]), jnp.array([0.7, 2.2, 30.0])
    check(jax.jit(matern), r, v, differentiable=(0, 1), batched=(0, 1), rtol=2e-5)
