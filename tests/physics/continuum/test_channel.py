"""Viscous liquids driven through a channel: their velocity for every grid and time step."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from continuum_run import jit_unoptimized

from jaxgpu.physics.continuum import Body, Grid, HerschelBulkley, Liquid, Scene, fill_box, simulate

WIDTH, FASTEST = 0.5, 0.5  # m, m/s


def channel(cells, index, consistency, density=1000.0, **fields):
    """Make a power-law liquid with the exact flow; return the profile's mean velocity, too.

    u = u_max (1 - |2 y / H|^(1 + 1/n)), which the pressure gradient G drives with u_max = n / (n +
    1) (G / k)^(1/n) (H / 2)^(1 + 1/n).
    """
    dx, power = WIDTH / cells, 1 + 1 / index
    push = consistency * (FASTEST * (index + 1) / index / (WIDTH / 2) ** power) ** index
    x = fill_box((0.0, 0.0), (4 * dx, WIDTH), dx / 2)
    u = FASTEST * (1 - np.abs(2 * np.asarray(x[:, 1]) / WIDTH - 1) ** power)
    law = Liquid(1e5, consistency, tension=1e6)
    if index != 1:
        law = HerschelBulkley(1e5, 0.0, consistency, index, tension=1e6)
    body = Body(x, law, (dx / 2) ** 2, density, v=jnp.asarray(np.stack([u, 0 * u], 1), jnp.float32))
    grid = Grid(dx, (4, cells), faces=("periodic", "stick"))
    scene = Scene((body,), grid, gravity=(push / density, 0.0), **fields)
    return scene.prepare(), FASTEST * (1 - 1 / (power + 1))


def speeds(scene, t):
    """Return the largest and the mean velocity of the particles after t in m/s."""
    b = simulate(scene, t).state.bodies[0]
    kept = np.asarray(b.m) > 0
    v = np.asarray(b.v[:, 0])[kept]
    return v.max(), v.mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "index, share, t",
    [
        (0.5, 1.0, 3.0),  # fell to 0.29 of it in 12 s
        (0.5, 0.25, 1.0),
        (1.0, 1.0, 2.0),  # to 0.92 in 6 s
    ],
)
def test_a_power_law_liquid_keeps_the_speed_it_should_have(index, share, t):
    """Row 22: from the exact profile, at the step that `prepare` selects and a quarter of it."""
    scene, mean = channel(16, index, 10.2)
    assert scene.sharp
    fastest, even = speeds(dataclasses.replace(scene, dt=share * scene.dt), t)
    np.testing.assert_allclose(fastest, FASTEST, rtol=0.05)
    np.testing.assert_allclose(even, mean, rtol=0.05)


def test_other_liquids_densities_and_boxes_are_chosen_for():
    """Transfers are sharp only where damping exceeds a hundredth of the viscosity's effect."""
    rng = np.random.default_rng(2)
    for _ in range(4):
        eta, density = 10 ** rng.uniform(-3, 3), rng.uniform(500.0, 2000.0)
        cells = int(rng.integers(6, 40))
        scene, _ = channel(cells, 1.0, eta, density)
        k, dx = np.pi / WIDTH, WIDTH / cells
        damped = 0.03 * (k * dx) ** 4 / float(scene.dt) / (eta / density * k**2)
        assert scene.sharp == (damped > 0.01)
    assert not channel(16, 1.0, 0.0)[0].sharp  # without a viscosity there is nothing to drown
    assert (
        channel(16, 1.0, 0.0, sharp=True)[0].sharp
        and not channel(16, 0.5, 1.0, sharp=False)[0].sharp
    )


@pytest.mark.slow
def test_a_sharp_step_spreads_what_spreading_twice_would_have_lost(x64, d=3):
    """S (2 - G S) is linear: without forces, sharp step + step of the step = 2 steps."""
    rng, dx = np.random.default_rng(4), 0.1
    x = rng.uniform(0.3, 0.7, (60, d))
    volume, v = rng.uniform(0.2, 1.0, 60) * (dx / 2) ** d, rng.normal(size=(60, d))
    body = Body(jnp.asarray(x), Liquid(1e-9, volume_correction=None), volume, v=jnp.asarray(v))
    scene = Scene((body,), Grid(dx, (10,) * d), dt=1e-12)
    step = jit_unoptimized(scene.step)
    once = step(scene.init())
    twice = step(once)
    sharp = jit_unoptimized(dataclasses.replace(scene, sharp=True).step)(scene.init())
    get = lambda s: jax.tree.map(np.asarray, (s.bodies[0].v, s.bodies[0].C))
    want = jax.tree.map(lambda a, b: 2 * a - b, get(once), get(twice))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8), get(sharp), want
    )


@pytest.mark.slow
def test_a_sharp_step_is_differentiable_and_stable(x64):
    """Compare slopes with differences; noise in a sharp liquid decays at the largest step."""
    dx, rng = 0.1, np.random.default_rng(6)
    x = np.asarray(fill_box((0.3, 0.3), (0.7, 0.7), dx / 2), float)
    body = Body(jnp.asarray(x), HerschelBulkley(1e4, 3.0, 2.0, 0.6), (dx / 2) ** 2, 900.0)
    scene = Scene((body,), Grid(dx, (10, 10)), sharp=True).prepare()
    way, weight = rng.normal(size=x.shape), np.cos(np.arange(len(x)))

    def end(v, steps, dt):
        moved = dataclasses.replace(body, v=v)
        start = dataclasses.replace(scene, bodies=(moved,), dt=dt).init()
        step = lambda _, s: dataclasses.replace(scene, dt=dt).step(s)
        return jax.lax.fori_loop(0, steps, step, start).bodies[0]

    @jit_unoptimized
    def end_and_slope(v, steps, dt):
        """Return a scalar of the final state, its derivative along `way`, and the energy in J."""

        def measures(v):
            last = end(v, steps, dt)
            place = jnp.sum(weight[:, None] * last.x[: len(x)])
            return place, jnp.sum(last.m[:, None] * last.v**2)

        return jax.jvp(measures, (v,), (way,), has_aux=True)

    usual, dt = 0.1 * way[::-1], float(scene.dt)
    slope = end_and_slope(usual, 20, dt)[1]
    place = lambda h: end_and_slope(usual + h * way, 20, dt)[0]
    central = [(place(h) - place(-h)) / (2 * h) for h in (1e-4, 1e-5, 1e-6)]
    assert min(abs(c - slope) for c in central) < 1e-6 * abs(slope)

    largest = 0.99 * 2.5 * dt
    before, after = (end_and_slope(0.05 * way, steps, largest)[2] for steps in (0, 300))
    assert after < 0.5 * before
