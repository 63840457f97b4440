"""Plummer spheres against Plummer's formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check
from nbody_inputs import energy as energy_of
from nbody_inputs import masses
from scipy.stats import kstest

from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import plummer, virialize

A = 3 * np.pi / 16
draw = jax.jit(plummer, static_argnums=1)
energy = jax.jit(diagnostics.energy)


def test_radii_follow_plummers_mass_profile(x64):
    """Use Kolmogorov-Smirnov over 20 seeds: with p uniform, the smallest surely exceeds 1e-4."""
    mass = lambda r: np.minimum((r**3 / (r * r + A * A) ** 1.5) / 0.999, 1)
    worst = 1.0
    for seed in range(20):
        x = np.asarray(draw(jax.random.key(seed), 2000)[0])
        worst = min(worst, kstest(np.linalg.norm(x, axis=1), mass).pvalue)
    assert worst > 1e-4


@pytest.mark.slow
def test_speeds_are_below_escape_and_hot_enough_in_the_middle(x64):
    bodies = tuple(map(np.asarray, draw(jax.random.key(1), 20000)))
    r, v = (np.linalg.norm(q, axis=1) for q in bodies)
    escape = np.sqrt(2 / np.sqrt(r * r + A * A))
    assert (v < 1.02 * escape).all()  # the centring moves everyone a little
    # The exact dispersion in one direction is 1 / (6 sqrt(r^2 + a^2)) for this sphere.
    for low, high in ((0, 0.3), (0.3, 0.7), (0.7, 1.5)):
        here = (r >= low) & (r < high)
        want = np.mean(1 / (6 * np.sqrt(r[here] ** 2 + A * A)))
        spread = bodies[1][here].var(0).mean()
        assert abs(spread / want - 1) < 5 * np.sqrt(2 / (3 * here.sum()))  # five standard errors


@pytest.mark.parametrize("seed", range(5))
def test_energies_are_those_of_the_units(x64, seed):
    count = 2000
    x, v = map(np.asarray, draw(jax.random.key(seed), count))
    kinetic, potential = energy(x, v, m := masses(count, seed))
    bound = 5 * np.sqrt((m * m).sum())  # five times the relative scatter of a sum over the bodies
    assert abs(kinetic / 0.25 - 1) < bound and abs(potential / -0.5 - 1) < bound
    assert max(np.abs(q.mean(0)).max() for q in (x, v)) < 1e-15


@pytest.mark.slow
def test_conforms_in_either_precision():
    draw = jax.jit(lambda data: plummer(jax.random.wrap_key_data(data), 32))
    data = jax.random.key_data(jax.random.key(3))
    check(draw, data)
    with jax.enable_x64(True):
        assert draw(data)[0].dtype == jnp.float64


def test_virial_scaling_is_exact(x64):
    """Test a virial ratio with softening, which enters the length, and a cold start without."""
    rng, cases = np.random.default_rng(0), [(0.2, 0.05), (0.0, 0.0)]
    m, bodies = rng.uniform(0.2, 3, 50), 7 * rng.normal(size=(2, 50, 3)) + 3
    options = {"xla_backend_optimization_level": 0}  # compiled once and run once
    scale_cases = lambda x, v: [virialize(x, v, m, *case) for case in cases]
    found = jax.jit(scale_cases, compiler_options=options)(*bodies)
    target = float(m.sum()) ** 2 / 2
    for (ratio, softening), (x, v) in zip(cases, found):
        kinetic, potential = energy_of(np.concatenate([x.T, v.T]), m, softening)
        np.testing.assert_allclose(potential, -target, rtol=1e-12)
        np.testing.assert_allclose(kinetic, ratio * target, rtol=1e-12)
        np.testing.assert_allclose([m @ x, m @ v], 0, atol=1e-12)
    small = virialize(*bodies.astype(np.float32), m.astype(np.float32), np.float64(0.5))
    assert [q.dtype for q in small] == [np.float32] * 2  # a number of NumPy widens nothing


def test_velocities_that_are_not_those_of_the_places_are_refused():
    x, m = np.eye(3, dtype=np.float32), np.ones(3, np.float32)
    with pytest.raises(ValueError, match=r"virialize: v has shape \[2, 3\]; it must be \[3, 3\]"):
        virialize(x, x[:2], m)
