"""Mass functions against quadrature and published means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import gradients_are_finite
from scipy.integrate import quad
from scipy.stats import kstest

from jaxgpu.physics.nbody.models import masses

quantile = jax.jit(masses.quantile)
draw = jax.jit(masses.sample_masses, static_argnums=2)


def kroupa(m):
    """Evaluate Kroupa (2001), eq. 2, up to a factor: continuous at 0.08 and 0.5."""
    return np.where(m < 0.08, m**-0.3 / 0.08, np.where(m < 0.5, m**-1.3, 0.5 * m**-2.3))


def integral(f, low, high):
    edges = [low, *(b for b in (0.08, 0.5, 1.0) if low < b < high), high]
    return sum(quad(f, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in zip(edges, edges[1:]))


@pytest.mark.parametrize("low, high", [(0.08, 100.0), (0.01, 50.0), (0.1, 0.4), (0.7, 8.0)])
def test_kroupas_mean_and_shares(x64, low, high):
    law = masses.kroupa(low, high)
    number = integral(kroupa, low, high)
    want = integral(lambda m: m * kroupa(m), low, high) / number
    np.testing.assert_allclose(masses.mean_mass(law), want, rtol=1e-9)
    for share in (0.03, 0.4, 0.77, 0.999):
        m = float(quantile(law, share))
        np.testing.assert_allclose(integral(kroupa, low, m) / number, share, rtol=1e-9)


def test_published_means(x64):
    """Check 0.36 for 0.01 to 50 (Kroupa 2001, sect. 2.2) and Salpeter's 0.35 for 0.1 to 100."""
    assert abs(float(masses.mean_mass(masses.kroupa(0.01, 50.0))) - 0.36) < 0.01
    assert abs(float(masses.mean_mass(masses.salpeter())) - 0.35) < 0.01


def test_draws_follow_the_law(x64):
    """Use Kolmogorov-Smirnov over 20 seeds: the smallest of 20 p values surely exceeds 1e-4."""
    law = masses.kroupa()
    below = np.linspace(0, 1, 4001)
    grid = np.asarray(quantile(law, below))
    m = [np.asarray(draw(jax.random.key(s), law, 1000)) for s in range(20)]
    assert min(kstest(one, lambda q: np.interp(q, grid, below)).pvalue for one in m) > 1e-4
    assert min(one.min() for one in m) >= 0.08 and max(one.max() for one in m) <= 100


def test_a_slope_of_one_is_a_logarithm(x64):
    law = masses.MassFunction(jnp.array([0.1, 1.0, 10.0]), jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(
        masses.quantile(law, jnp.asarray(0.3)), 0.1 * np.exp(0.3 * (np.log(10) + 0.9))
    )
    np.testing.assert_allclose(
        masses.mean_mass(law), (0.9 + np.log(10)) / (np.log(10) + 0.9), rtol=1e-12
    )


@pytest.mark.parametrize(
    "low, high, sentence",
    [
        (0.0, 1.0, "kroupa: low=0; it must be a finite number above 0"),
        (2.0, 1.0, r"kroupa: low .*, high .*; must be 0 < low < high"),
        (0.08, np.inf, "kroupa: high=inf; it must be a finite number above 0"),
    ],
)
def test_wrong_limits_are_refused(low, high, sentence):
    with pytest.raises(ValueError, match=sentence):
        masses.kroupa(low, high)


def test_no_stars_below_kroupas_beginning():
    with pytest.raises(ValueError, match="kroupa: low 0.001; it begins at 0.01"):
        masses.kroupa(0.001, 1.0)


@pytest.mark.slow
def test_gradients_are_finite(x64):
    given = masses.kroupa(0.02, 10.0), jnp.array([0.1, 0.5, 0.9])
    gradients_are_finite(masses.quantile, given, (0, 1))
