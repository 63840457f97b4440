"""King models: the published concentrations, SciPy's integrator, and sampled clusters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import masses
from scipy.integrate import solve_ivp
from scipy.special import gammainc
from scipy.stats import kstest

from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import king, king_models

profile = jax.jit(king_models.profile)
draw = jax.jit(king, static_argnums=1)
energy = jax.jit(diagnostics.energy)


def lane_emden(depth):
    """Return log10 of the edge and the mass, from Poisson's equation in the radius."""
    density = lambda w: np.exp(max(w, 0)) * gammainc(2.5, max(w, 0))
    rate = lambda r, y: [y[1], -9 * density(y[0]) / density(depth) - 2 / r * y[1]]
    edge = lambda r, y: y[0]
    edge.terminal = True
    begin = [depth - 1.5e-6, -3e-3]
    path = solve_ivp(rate, (1e-3, 1e5), begin, "DOP853", rtol=1e-12, atol=1e-14, events=edge)
    r = path.t[-1]
    return np.log10(r), -r * r * path.y[1, -1] * 4 * np.pi / 9


def test_concentrations_are_the_published_ones(x64):
    """Check log10(rt / r0) at W0 = 1 to 10, 12: King (1966), Binney & Tremaine (2008), fig. 4.9."""
    depths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]
    published = [0.296, 0.505, 0.672, 0.840, 1.029, 1.255, 1.528, 1.833, 2.118, 2.350, 2.739]
    got = [float(profile(float(w)).concentration) for w in depths]
    np.testing.assert_allclose(got, published, atol=6e-4)


@pytest.mark.parametrize("depth", [0.5, 5.0, 9.0, 16.0])
def test_solves_poissons_equation(x64, depth):
    model = profile(depth)
    np.testing.assert_allclose([model.concentration, model.mass[-1]], lane_emden(depth), rtol=3e-8)
    # The mass is the integral of the density.
    w, r = np.asarray(model.depth), np.asarray(model.r)
    density = np.exp(w - depth) * gammainc(2.5, w) / gammainc(2.5, depth)
    f = 4 * np.pi * r * r * density
    summed = np.concatenate([[0], np.cumsum(np.diff(r) * (f[1:] + f[:-1]) / 2)])
    # The trapezium rule has an error of about 5e-5 of the total in the first cells.
    np.testing.assert_allclose(model.mass, summed, atol=1e-4 * summed[-1])


def test_the_virial_radius_of_an_even_sphere_is_five_sixths_of_its_own(x64):
    """The potential energy is U = -3 M^2 / 5 R."""
    part = np.linspace(0, 1, 2001)
    even = king_models.Profile(depth=1 - part, r=2 * part, mass=3 * part**3)
    np.testing.assert_allclose(even.virial_radius, 2 * 5 / 6, rtol=1e-6)


@pytest.mark.slow
def test_concentration_is_differentiable(x64):
    slope = jax.jit(jax.grad(lambda w: king_models.profile(w).concentration))(5.0)
    difference = (profile(5.001).concentration - profile(4.999).concentration) / 0.002
    assert abs(slope / difference - 1) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("depth", [3.0, 7.0])
def test_draws_follow_the_profile_in_equilibrium(x64, depth):
    """Check five seeds: the mass profile, the energies, and the central dispersion."""
    model, count = profile(depth), 2000
    r, mass = np.asarray(model.r / model.virial_radius), np.asarray(model.mass / model.mass[-1])
    worst = 1.0
    for seed in range(5):
        x, v = map(np.asarray, draw(jax.random.key(seed), count, depth))
        worst = min(
            worst,
            kstest(np.linalg.norm(x, axis=1), lambda q: np.interp(q, r, mass)).pvalue,
        )
        kinetic, potential = energy(x, v, m := masses(count, seed))
        # The relative scatter of energies over the samples is below that of a sum over the bodies.
        bound = 5 * np.sqrt((m * m).sum())
        assert abs(kinetic / 0.25 - 1) < bound, (seed, kinetic)
        assert abs(potential / -0.5 - 1) < bound, (seed, potential)
        assert np.linalg.norm(x, axis=1).max() < 1.02 * r[-1]
    assert worst > 1e-3


def test_speeds_follow_kings_distribution(x64):
    """Compare at one depth with the distribution function, by SciPy's special functions."""
    w = jnp.full(20000, 4.0)
    share = jnp.asarray((np.arange(20000) + 0.5) / 20000)
    v = np.asarray(king_models._speeds(w, share))
    grid = np.linspace(0, np.sqrt(8), 20001)
    density = (np.exp(4.0 - grid**2 / 2) - 1) * grid**2
    below = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    np.testing.assert_allclose(np.interp(v, grid, below / below[-1]), share, atol=1e-6)


def test_a_wrong_depth_is_refused():
    with pytest.raises(
        ValueError,
        match="king: depth=0; it must be a finite number of at least 0.1 and of at most 16",
    ):
        king(jax.random.key(0), 5, 0.0)
