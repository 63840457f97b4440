"""Keplerian elements: both directions, against high precision, and their gradients."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from conformance import gradients_are_finite
from field_shapes import check_shapes

from jaxgpu.physics.nbody.orbits import elements

to_state, from_state = jax.jit(elements.to_state), jax.jit(elements.from_state)


def orbits(seed, e=0.9, count=200):
    return elements.sample_uniform(jax.random.key(seed), count, (0.5, 30.0), e, 3.1)


@pytest.mark.parametrize("seed", range(3))
def test_there_and_back(x64, seed):
    orbit, gm = orbits(seed), 2.5
    again = from_state(*to_state(orbit, gm), gm)
    for name in ("a", "e", "i"):
        np.testing.assert_allclose(getattr(again, name), getattr(orbit, name), rtol=1e-10)
    # Angles lose digits where the orbit is nearly circular or planar, so compare the positions.
    for one, two in zip(to_state(orbit, gm), to_state(again, gm)):
        np.testing.assert_allclose(one, two, atol=1e-10 * np.abs(one).max())


def test_kepler_equation_at_forty_digits(x64):
    e = np.array([0.0, 1e-8, 0.1, 0.6, 0.95, 0.999])
    m = np.array([-3.1, -0.01, 0.0, 1e-6, 0.5, 3.0, 40.0])
    got = jax.jit(elements.eccentric_anomaly)(m[:, None], e[None])
    with mpmath.workdps(40):
        for i, mean in enumerate(m):
            for j, ecc in enumerate(e):
                value = mpmath.mpf(float(got[i, j]))
                residual = value - mpmath.mpf(ecc) * mpmath.sin(value) - mpmath.mpf(mean)
                assert abs(residual) < 4e-16 * (1 + abs(mean)), (mean, ecc)


def test_energy_and_spin_are_those_of_the_elements(x64):
    orbit = orbits(11)
    x, v = (np.asarray(part) for part in to_state(orbit, 1.7))
    energy = (v * v).sum(1) / 2 - 1.7 / np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(energy, -1.7 / (2 * np.asarray(orbit.a)), rtol=1e-9)
    spin = np.cross(x, v)
    height = np.sqrt(1.7 * np.asarray(orbit.a) * (1 - np.asarray(orbit.e) ** 2))
    np.testing.assert_allclose(np.linalg.norm(spin, axis=1), height, rtol=1e-9)
    np.testing.assert_allclose(spin[:, 2] / height, np.cos(orbit.i), atol=1e-9)


def test_the_eccentricity_vector_points_to_the_pericentre(x64):
    orbit = orbits(5)
    start = elements.Elements(
        orbit.a, orbit.e, orbit.i, orbit.node, orbit.peri, jnp.zeros_like(orbit.a)
    )
    x, v = to_state(start, 1.0)  # at the pericentre itself
    vector = jax.jit(elements.eccentricity_vector)(x, v, 1.0)
    x = np.asarray(x)
    along = np.asarray(orbit.e)[:, None] * x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(vector, along, atol=1e-10)


def test_draws_fill_the_ranges(x64):
    orbit = elements.sample_uniform(jax.random.key(0), 5000, (2.0, 3.5), 0.1, 0.2)
    angles = ((angle, 0, 2 * np.pi) for angle in (orbit.node, orbit.peri, orbit.mean))
    for value, low, high in ((orbit.a, 2, 3.5), (orbit.e, 0, 0.1), (orbit.i, 0, 0.2), *angles):
        assert value.min() >= low and value.max() <= high
        # The mean of 5000 uniform samples is within 5 of its standard errors.
        assert abs(value.mean() - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * 5000)


@pytest.mark.slow
def test_gradients_are_finite(x64):
    orbit, gm = orbits(3, 0.6, 8), jnp.asarray(1.3)
    assert check_shapes(orbit) == {}
    gradients_are_finite(elements.to_state, (orbit, gm), (0, 1))
    gradients_are_finite(elements.from_state, (*to_state(orbit, gm), gm), (0, 1, 2))


@pytest.mark.parametrize("field", ["node", "peri"])
def test_angles_in_degrees_are_refused(field):
    """A table's 100.46 degrees would be sixteen revolutions; an anomaly may have any number."""
    angles = {"i": 0.02, "node": -6.0, "peri": 6.0, "mean": 900.0}
    fine = elements.Elements(a=np.ones(2), e=np.zeros(2), **_pairs(angles))
    elements.to_state(fine, 1.0)
    wrong = elements.Elements(a=np.ones(2), e=np.zeros(2), **_pairs(angles | {field: 100.46}))
    with pytest.raises(ValueError, match=rf"Elements.{field}=100.46 at \[0\].* in rad"):
        elements.to_state(wrong, 1.0)


def _pairs(angles):
    return {name: np.full(2, value) for name, value in angles.items()}


@pytest.mark.parametrize("mean, e", [(np.nan, 0.5), (np.inf, 0.5), (1.0, 1.0), (1.0, -0.1)])
def test_anomalies_that_are_none_are_refused(mean, e):
    with pytest.raises(ValueError, match=r"elements.eccentric_anomaly: (mean|e)=.*; it must be"):
        elements.eccentric_anomaly(mean, e)
