"""Complete simulations against mechanics: a ringing bar, a viscous wave, a slide, a collision."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.geometry import sdf
from jaxgpu.physics.continuum import Body, Collider, Grid, Scene, fill_box, simulate
from jaxgpu.physics.continuum.materials import Liquid, NeoHookean

G = 9.81


def mean_velocity(s):
    """Return the mass-weighted mean velocity of the first body along x in m/s."""
    return jnp.sum(s.bodies[0].m * s.bodies[0].v[:, 0]) / jnp.sum(s.bodies[0].m)


def shear_wave(s):
    """Return the amplitude of the velocity's 1 m wave, times the number of particles."""
    return jnp.sum(s.bodies[0].v[:, 0] * jnp.sin(2 * np.pi * s.bodies[0].x[:, 1]))


@pytest.mark.slow
def test_a_free_bar_rings_at_its_period():
    young, nu, dx = 1e6, 0.3, 1 / 32
    mu, lam = young / (2 * (1 + nu)), young * nu / ((1 + nu) * (1 - 2 * nu))
    plane = 4 * mu * (lam + mu) / (lam + 2 * mu)
    period = 2 / np.sqrt(plane / 1000)
    x = fill_box((0.5, 0.4), (1.5, 0.6), dx / 2)
    shape = jnp.cos(jnp.pi * (x[:, 0] - 0.5))
    body = Body(x, NeoHookean(young, nu), (dx / 2) ** 2, v=0.05 * jnp.stack([shape, 0 * shape], 1))
    mode = np.asarray(Scene((body,), Grid(dx, (64, 32))).init().bodies[0].v[:, 0])

    def mode_speed(s):
        b = s.bodies[0]
        return jnp.sum(b.m * b.v[:, 0] * mode / 0.05) / jnp.sum(b.m)

    run = simulate(Scene((body,), Grid(dx, (64, 32))), 3.2 * period, frames=320, measure=mode_speed)
    t = np.linspace(0, 3.2, 321)
    v = run.history
    down = np.flatnonzero((v[:-1] > 0) & (v[1:] <= 0))
    zero = t[down] + (t[1] - t[0]) * v[down] / (v[down] - v[down + 1])
    np.testing.assert_allclose(np.diff(zero), 1, rtol=0.01)
    peaks = [np.abs(v[(t > k + 0.75) & (t < k + 1.25)]).max() for k in range(3)]
    assert peaks[2] > 0.99**2 * peaks[0]  # at most 1 % a period


def shear_decay(factor):
    """Return measured over exact decay rate of a shear wave, at a multiple of the usual step."""
    # At 64 cells per wave, APIC's damping, 0.03 (k dx)^4 per step, is 0.3 % of this viscosity's.
    dx, eta, wave = 1 / 64, 20.0, 2 * np.pi
    x = fill_box((0.0, 0.0), (4 * dx, 1.0), dx / 2)
    shape = np.sin(wave * np.asarray(x[:, 1]))
    body = Body(
        x, Liquid(50.0, eta), (dx / 2) ** 2, v=jnp.asarray(0.01 * np.stack([shape, 0 * shape], 1))
    )
    scene = Scene((body,), Grid(dx, (4, 64), faces=("periodic", "periodic")))
    scene = scene.prepare()
    scene = dataclasses.replace(scene, dt=scene.dt * factor)
    t = 1000 / (eta * wave**2) * 0.7
    _, a, b = simulate(scene, t, frames=2, measure=shear_wave).history
    return -np.log(b / a) / (eta / 1000 * wave**2 * t / 2)


@pytest.mark.slow
def test_viscosity_is_that_of_the_liquid_at_every_time_step():
    rates = [shear_decay(f) for f in (1.0, 0.5, 0.25)]
    np.testing.assert_allclose(rates, 1, rtol=0.03)
    np.testing.assert_allclose(rates, rates[0], rtol=0.01)


@pytest.mark.slow
def test_a_block_slides_as_coulomb_says():
    dx = 1 / 16
    x = fill_box((0.5, 0.25), (1.25, 0.5), dx / 2)
    body = Body(x, NeoHookean(2e5), (dx / 2) ** 2)
    for angle, mu in ((0.5, 0.3), (0.5, 0.1), (0.35, 0.6)):
        plane = Collider(sdf.HalfSpace((0.0, 1.0)), x=(0.0, 0.25), friction=mu)
        gravity = (G * np.sin(angle), -G * np.cos(angle))
        scene = Scene((body,), Grid(dx, (48, 16)), gravity=gravity, colliders=(plane,))
        speed = simulate(scene, 0.5, frames=10, measure=mean_velocity).history
        a = (speed[-1] - speed[2]) / 0.4  # after the block has settled on the plane
        exact = G * (np.sin(angle) - mu * np.cos(angle))
        if np.tan(angle) > mu:
            np.testing.assert_allclose(a, exact, rtol=0.02)
        else:
            assert abs(speed[-1]) < 0.01 * G * np.sin(angle) * 0.5
