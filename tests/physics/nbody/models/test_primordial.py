"""Primordial binaries: their positions and the distributions of their elements."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import points
from scipy.stats import kstest

from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import add_companions, binary_orbits, plummer
from jaxgpu.physics.nbody.orbits.elements import Elements


def test_orbits_are_uniform_in_the_logarithm_and_thermal(x64):
    for seed in range(5):
        orbit = binary_orbits(jax.random.key(seed), 2000, (1e-4, 1e-1))
        assert kstest(np.log10(orbit.a), "uniform", (-4, 3)).pvalue > 1e-3
        assert kstest(np.asarray(orbit.e) ** 2, "uniform", (0, 0.998)).pvalue > 1e-3
        assert kstest(np.cos(orbit.i), "uniform", (-1, 2)).pvalue > 1e-3
        assert float(orbit.e.max()) < 0.999


@pytest.mark.slow
def test_pairs_keep_the_centres_and_are_found_again(x64):
    x, v = jax.jit(plummer, static_argnums=1)(jax.random.key(0), 60)
    m = jnp.asarray(np.random.default_rng(0).uniform(0.5, 2, 60))
    companions = m[:20] * 0.6
    orbit = binary_orbits(jax.random.key(1), 20, (1e-6, 1e-4))
    *both, masses = map(np.asarray, jax.jit(add_companions)(x, v, m, companions, orbit))
    pairs = jax.jit(diagnostics.bound_pairs)(*both, masses)
    stars, start = points(both), points((x, v))
    assert stars.shape == (6, 80) and masses.shape == (80,)
    both = masses[:20] + masses[60:]
    shares = (masses[:20] / both)[None], (masses[60:] / both)[None]
    centre = shares[0] * stars[:, :20] + shares[1] * stars[:, 60:]
    np.testing.assert_allclose(centre, start[:, :20], atol=1e-12)
    np.testing.assert_array_equal(stars[:, 20:60], start[:, 20:])
    np.testing.assert_array_equal(pairs.partner[:20], np.arange(60, 80))
    np.testing.assert_allclose(pairs.a[:20], orbit.a, rtol=1e-6)
    np.testing.assert_allclose(pairs.e[:20], orbit.e, atol=1e-6)


def test_a_star_and_its_companion_move_about_where_the_star_was():
    x, v = jnp.array([[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]), jnp.array([[0.0, 0.5, 0.1], [1.0, 0, 0]])
    turned = {"i": 0.3, "node": 1.0, "peri": 2.0, "mean": 0.5}
    orbit = Elements(a=jnp.array([0.2]), e=jnp.array([0.6]), **turned)
    orbit = jax.tree.map(lambda q: jnp.broadcast_to(jnp.float32(q), (1,)), orbit)
    places, speeds, m = jax.jit(add_companions)(x, v, jnp.array([3.0, 2.0]), jnp.ones(1), orbit)
    np.testing.assert_array_equal(m, [3, 2, 1])
    for got, start in ((places, x), (speeds, v)):
        np.testing.assert_allclose(0.75 * got[0] + 0.25 * got[2], start[0], rtol=1e-5)
        np.testing.assert_array_equal(got[1], start[1])
    assert 0.0799 < np.linalg.norm(places[2] - places[0]) < 0.3201  # a (1 - e) to a (1 + e)


def test_refuses_more_companions_than_stars(x64):
    orbit = binary_orbits(jax.random.key(0), 3, (0.1, 0.2))
    with pytest.raises(ValueError, match="add_companions: 3 companions of 2 stars"):
        add_companions(jnp.zeros((2, 3)), jnp.zeros((2, 3)), jnp.ones(2), jnp.ones(3), orbit)
    with pytest.raises(
        ValueError, match="binary_orbits: a .*; must be the smallest and the largest"
    ):
        binary_orbits(jax.random.key(0), 3, (0.2, 0.1))


def test_velocities_that_are_not_those_of_the_places_are_refused():
    orbit = binary_orbits(jax.random.key(0), 2, (1e-4, 1e-1))
    x, m = np.ones((8, 3), np.float32), np.ones(8, np.float32)
    with pytest.raises(
        ValueError, match=r"add_companions: v has shape \[7, 3\]; it must be \[8, 3\]"
    ):
        add_companions(x, x[:7], m, m[:2], orbit)
