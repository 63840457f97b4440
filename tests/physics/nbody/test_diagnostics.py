"""Diagnostics of a cluster against their definitions and against Plummer's sphere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check

from jaxgpu.physics.nbody import diagnostics, models

A = 3 * np.pi / 16


@pytest.mark.parametrize("seed", range(5))
def test_energy_is_the_sum_over_pairs(x64, seed):
    random = np.random.default_rng(seed)
    points, m = random.normal(size=(6, 9)), random.uniform(0.1, 1, 9)
    kinetic = sum(m[i] * (points[3:, i] ** 2).sum() / 2 for i in range(9))
    potential = -sum(
        m[i] * m[j] / np.sqrt(((points[:3, i] - points[:3, j]) ** 2).sum() + 0.1**2)
        for i in range(9)
        for j in range(i)
    )
    got = diagnostics.energy(jnp.asarray(points), jnp.asarray(m), 0.1)
    np.testing.assert_allclose(got, [kinetic, potential], rtol=1e-13)


def test_potential_of_a_plummer_sphere(x64):
    stars = models.plummer(jax.random.key(0), 20000)
    m = jnp.full(20000, 1 / 20000)
    r = np.array([0.2, 0.6, 2.0, 10.0])
    places = jnp.asarray(np.stack([r, 0 * r, 0 * r]))
    got = diagnostics.potential(places, stars, m)
    np.testing.assert_allclose(got, -1 / np.sqrt(r * r + A * A), rtol=0.02)  # 3 / sqrt(N)


def test_lagrangian_radii_of_a_plummer_sphere(x64):
    """0.3087, 0.7686 and 2.183 in N-body units, five seeds, 3 / sqrt(N) and the cut at 0.999."""
    count = 4000
    m, fractions = jnp.full(count, 1 / count), jnp.array([0.1, 0.5, 0.9])
    for seed in range(5):
        points = models.plummer(jax.random.key(seed), count)
        radii = diagnostics.lagrangian_radii(points, m, jnp.zeros(3), fractions)
        np.testing.assert_allclose(radii, [0.3087, 0.7686, 2.183], rtol=3 / np.sqrt(count * 0.1))


def test_lagrangian_radii_weigh_masses(x64):
    points = jnp.zeros((6, 4)).at[0].set(jnp.array([4.0, 1, 3, 2]))
    m = jnp.array([0.1, 0.5, 0.1, 0.3])
    radii = diagnostics.lagrangian_radii(points, m, jnp.zeros(3), jnp.array([0.4, 0.6, 0.85, 1.0]))
    np.testing.assert_array_equal(radii, [1, 2, 3, 4])


def test_the_core_is_where_the_stars_are_densest(x64):
    """Off-centre on purpose; with density squared for a weight the radius is 0.55 scale lengths.

    The mean over the stars of rho^2 r^2 over that of rho^2 is, for Plummer's rho, a^2 times
    B(5/2, 5) / B(3/2, 6) = 0.3. Densities from five stars are noisy, and noise to the sixth power
    favours dense accidents: a fifth either way.
    """
    for seed in range(5):
        points = models.plummer(jax.random.key(seed), 2000).at[0].add(5.0)
        centre, radius = diagnostics.core(points, jnp.full(2000, 1 / 2000))
        assert np.abs(centre - np.array([5.0, 0, 0])).max() < 0.1
        assert 0.8 * 0.5477 * A < radius < 1.2 * 0.5477 * A


def test_relaxation_time_is_that_of_the_literature():
    assert abs(diagnostics.half_mass_relaxation_time(256, 0.7686) - 7.1) < 0.05


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_conforms(x64, dtype):
    points = models.plummer(jax.random.key(0), 16).astype(dtype)
    m = jnp.full(16, 1 / 16, dtype)
    check(diagnostics.energy, points, m, differentiable=(0, 1), batched=(0,))
    check(diagnostics.core, points, m)
    fractions = jnp.array([0.25, 0.5], dtype)
    check(diagnostics.lagrangian_radii, points, m, jnp.zeros(3, dtype), fractions)


def test_the_core_is_weighted_by_casertano_and_huts_densities(x64):
    """With unequal masses, star by star: five neighbours' mass within the sixth's distance."""
    random = np.random.default_rng(2)
    points, m = random.normal(size=(6, 25)), random.uniform(0.1, 2, 25)
    density = np.zeros(25)
    for i in range(25):
        d = np.linalg.norm(points[:3] - points[:3, i : i + 1], axis=0)
        order = np.argsort(d)
        density[i] = m[order[1:6]].sum() / d[order[6]] ** 3
    centre = points[:3] @ density / density.sum()
    r2 = ((points[:3] - centre[:, None]) ** 2).sum(0)
    radius = np.sqrt((density**2 * r2).sum() / (density**2).sum())
    got = diagnostics.core(jnp.asarray(points), jnp.asarray(m))
    np.testing.assert_allclose(got[0], centre, rtol=1e-12)
    np.testing.assert_allclose(got[1], radius, rtol=1e-12)
