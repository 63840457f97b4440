"""Diagnostics of a cluster against their definitions and against Plummer's sphere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check, gradients_are_finite
from nbody_inputs import energy as energy_of
from nbody_inputs import halves, masses, sphere

from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import plummer
from jaxgpu.physics.nbody.orbits import elements

A = 3 * np.pi / 16
draw = jax.jit(plummer, static_argnums=1)
energy, radii_of, core = (
    jax.jit(f) for f in (diagnostics.energy, diagnostics.lagrangian_radii, diagnostics.core)
)


@pytest.mark.parametrize("seed", range(5))
def test_energy_is_the_sum_over_pairs(x64, seed):
    random = np.random.default_rng(seed)
    stars, m = random.normal(size=(6, 9)), random.uniform(0.1, 1, 9)
    kinetic = sum(m[i] * (stars[3:, i] ** 2).sum() / 2 for i in range(9))
    potential = -sum(
        m[i] * m[j] / np.sqrt(((stars[:3, i] - stars[:3, j]) ** 2).sum() + 0.1**2)
        for i in range(9)
        for j in range(i)
    )
    got = energy(*halves(stars), m, 0.1)
    np.testing.assert_allclose(got, [kinetic, potential], rtol=1e-13)


@pytest.mark.slow
def test_potential_of_a_plummer_sphere(x64):
    x, _ = draw(jax.random.key(0), 4000)
    m = masses(4000, 0)
    r = np.array([0.2, 0.6, 2.0, 10.0])
    got = jax.jit(diagnostics.potential)(np.stack([r, 0 * r, 0 * r], 1), x, m)
    scatter = np.sqrt((m * m).sum())  # of a sum over the stars; 1 / sqrt(N) of equal ones
    np.testing.assert_allclose(got, -1 / np.sqrt(r * r + A * A), rtol=3 * scatter)


@pytest.mark.slow
def test_lagrangian_radii_of_a_plummer_sphere(x64):
    """Check 0.3087, 0.7686 and 2.183 in N-body units, five seeds, and the cut at 0.999.

    The tolerance is three times the scatter of the mass inside, largest for the innermost tenth.
    """
    count, fractions = 4000, np.array([0.1, 0.5, 0.9])
    for seed in range(5):
        m = masses(count, seed)
        x, _ = draw(jax.random.key(seed), count)
        radii = radii_of(x, m, np.zeros(3), fractions)
        np.testing.assert_allclose(
            radii, [0.3087, 0.7686, 2.183], rtol=3 * np.sqrt((m * m).sum() / 0.1)
        )


def test_lagrangian_radii_weigh_masses(x64):
    x, m = np.zeros((4, 3)), np.array([0.1, 0.5, 0.1, 0.3])
    x[:, 0] = [4, 1, 3, 2]
    radii = radii_of(x, m, np.zeros(3), np.array([0.4, 0.6, 0.85, 1.0]))
    np.testing.assert_array_equal(radii, [1, 2, 3, 4])


@pytest.mark.slow
def test_the_core_is_where_the_stars_are_densest(x64):
    """Test off-centre; with the squared density as weight, the radius is 0.55 scale lengths.

    For Plummer's rho, the mean over the stars of rho^2 r^2 over that of rho^2 is a^2 times B(5/2,
    5) / B(3/2, 6) = 0.3. Densities from five stars are noisy, and the sixth power of noise favours
    accidentally dense stars: allow a fifth either way. The integral is for equal masses.
    """
    for seed in range(5):
        x = np.asarray(draw(jax.random.key(seed), 2000)[0]) + [5.0, 0, 0]
        centre, radius = core(x, np.full(2000, 1 / 2000))
        assert np.abs(centre - np.array([5.0, 0, 0])).max() < 0.1
        assert 0.8 * 0.5477 * A < radius < 1.2 * 0.5477 * A


def test_relaxation_time_is_that_of_the_literature():
    assert abs(diagnostics.half_mass_relaxation_time(256, 0.7686) - 7.1) < 0.05


@pytest.mark.slow
def test_gradients_are_finite_and_the_core_conforms():
    x, v = (jnp.asarray(q, jnp.float32) for q in halves(sphere(0, 16)))
    m = jnp.asarray(masses(16, 0), jnp.float32)
    gradients_are_finite(diagnostics.energy, (x, v, m), (0, 1, 2))
    check(core, x, m)


def test_the_core_is_weighted_by_casertano_and_huts_densities(x64):
    """Masses are unequal; each density is five neighbours' mass within the sixth's distance."""
    random = np.random.default_rng(2)
    stars, m = random.normal(size=(6, 25)), random.uniform(0.1, 2, 25)
    density = np.zeros(25)
    for i in range(25):
        d = np.linalg.norm(stars[:3] - stars[:3, i : i + 1], axis=0)
        order = np.argsort(d)
        density[i] = m[order[1:6]].sum() / d[order[6]] ** 3
    centre = stars[:3] @ density / density.sum()
    r2 = ((stars[:3] - centre[:, None]) ** 2).sum(0)
    radius = np.sqrt((density**2 * r2).sum() / (density**2).sum())
    got = core(stars[:3].T, m)
    np.testing.assert_allclose(got[0], centre, rtol=1e-12)
    np.testing.assert_allclose(got[1], radius, rtol=1e-12)


def test_each_class_of_mass_has_radii_of_its_own(x64):
    random = np.random.default_rng(4)
    stars, m = random.normal(size=(6, 60)), random.uniform(0.1, 2, 60)
    centre, edges = np.array([0.2, 0, -0.1]), [0.1, 0.5, 1.0, 5.0, 9.0]
    fractions = np.array([0.1, 0.5, 0.9])
    of_classes = jax.jit(diagnostics.class_radii)
    radii, count = of_classes(stars[:3].T, m, centre, fractions, np.array(edges))
    for c in range(3):
        own = (m >= edges[c]) & (m < edges[c + 1])
        r = np.linalg.norm(stars[:3, own] - centre[:, None], axis=0)
        order = np.argsort(r)
        share = np.cumsum(m[own][order]) / m[own].sum()
        np.testing.assert_allclose(radii[c], [r[order][share >= f][0] for f in fractions])
        assert int(count[c]) == own.sum()
    assert count[3] == 0 and np.isnan(radii[3]).all()


to_state = jax.jit(elements.to_state)


def test_a_budget_finds_the_binaries(x64):
    """Place two binaries of known elements in a moving cluster; check every part by definition."""
    stars = sphere(3, 40) * np.array([3.0] * 3 + [0.5] * 3)[:, None]
    m = np.random.default_rng(1).uniform(0.5, 1.5, 40) / 40
    want = []
    for first, second, a, e in ((3, 17, 1e-3, 0.3), (30, 8, 4e-4, 0.8)):
        orbit = elements.Elements(a, e, 0.4, 1.0, 2.0, 0.7)
        gm = m[first] + m[second]
        d = np.concatenate(to_state(orbit, gm))
        stars[:, second] = stars[:, first] + m[first] / gm * d
        stars[:, first] -= m[second] / gm * d
        want.append((min(first, second), max(first, second), a, e, -m[first] * m[second] / (2 * a)))
    stars[3:] += np.array([[0.3], [0.1], [0.0]])
    outside = stars[0] ** 2
    kinetic, potential = energy_of(stars, m)
    both = jax.jit(
        lambda x, v: (diagnostics.budget(x, v, m, 0.0, outside), diagnostics.bound_pairs(x, v, m))
    )
    got, pairs = both(*halves(stars))
    v = stars[3:] @ m / m.sum()
    np.testing.assert_allclose(got.bulk, m.sum() * (v @ v) / 2, rtol=1e-12)
    np.testing.assert_allclose(got.total, kinetic + potential + m @ outside, rtol=1e-12)
    np.testing.assert_allclose(got.virial_ratio, (kinetic - got.bulk) / -potential, rtol=1e-12)
    for i, j, a, e, energy in want:
        assert pairs.partner[i] == j and pairs.partner[j] == 40
        np.testing.assert_allclose(
            [pairs.a[i], pairs.e[i], pairs.energy[i]], [a, e, energy], rtol=1e-9
        )
    np.testing.assert_allclose(got.binaries, sum(w[-1] for w in want), rtol=0.01)  # and wide ones


nearest = jax.jit(diagnostics.nearest_star)


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_star_is_the_nearest(x64, seed):
    random = np.random.default_rng(seed)
    stars, places = random.normal(size=(3, 70)), random.normal(size=(3, 90))
    places[:, :70] = stars
    got = nearest(places.T, stars.T)
    d = np.linalg.norm(places[:, :, None] - stars[:, None], axis=0)
    np.testing.assert_array_equal(got, np.argmin(np.where(d > 0, d, np.inf), 1))


def test_relaxation_is_refused_to_few_stars():
    with pytest.raises(ValueError, match="half_mass_relaxation_time: count 9; must exceed"):
        diagnostics.half_mass_relaxation_time(9, 1.0)
    two = diagnostics.half_mass_relaxation_time(1000, 1.0, mass=4.0, coulomb=0.02)
    assert abs(float(two) - 0.138 * 1000 / 2 / np.log(20)) < 1e-4
    ten = diagnostics.half_mass_relaxation_time(10, 1.0)  # 1 / 0.11 = 9.09 is few enough
    assert abs(float(ten) - 1.38 / np.log(1.1)) < 1e-4
    with pytest.raises(ValueError, match="count 8; must exceed 1 / gamma = 8.0"):
        diagnostics.half_mass_relaxation_time(8, 1.0, coulomb=0.125)  # a logarithm of 0
