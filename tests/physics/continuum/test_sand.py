"""Sand in shear: its rate-dependent friction, and layers of it on a slope."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from collapse_experiments import COLUMNS, column, laws, measures
from scipy.optimize import brentq

from jaxgpu.physics.continuum import Body, DruckerPrager, Grid, Scene, fill_box, simulate

G = 9.81
BEADS = (0.38, 0.26, 0.279, 2500.0)  # mu(0), rise, I_0 and rho_s of glass: Jop et al. (2006)
SIN = {2: BEADS[0], 3: 3 * BEADS[0] / (2 * 3**0.5 + BEADS[0])}  # sin phi of such a cone


def mat(a):
    return tuple(tuple(np.asarray(x) for x in row) for row in a)


def array(m):
    return np.array([[np.asarray(x) for x in row] for row in m])


def beads(d, grain: float | None = 1e-3, young=1e7):
    """Make glass beads, with the plane-strain cone in 2-D and the other one in 3-D."""
    return DruckerPrager(young, 0.3, np.arcsin(SIN[d]), plane=d == 2, grain=grain)


def friction(tau):
    """Return |dev tau| / sqrt(2) p, in 2-D with the mean as third stress, and tau_xy / p."""
    d = len(tau)
    dev = tau - np.trace(tau) / d * np.eye(d)
    p = -np.trace(tau) / d
    return np.linalg.norm(dev) / (2**0.5 * p), tau[0, 1] / p


# One program serves all parameter values of a law.
stress = jax.jit(lambda law, matter, flow, dt: law.stress(matter, flow, dt))


@partial(jax.jit, static_argnums=2)
def shear_stress(law, rate, d, strain=0.08, steps=400):
    """Return the stress after simple shear at a given rate, from a pressure of about 1e3 Pa."""
    matter, tau = law.stress(law.rest(jnp.ones(()), d), mat(-4e-5 * 3 / d * np.eye(d)), 1.0)
    flow = tuple(tuple(rate * float((i, j) == (0, 1)) for j in range(d)) for i in range(d))
    step = lambda _, now: law.stress(now[0], flow, strain / steps / rate)
    return jax.lax.fori_loop(0, steps, step, (matter, tau))[1]


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_friction_in_steady_shear_is_that_published(x64, d):
    rest, rise, half, solid = BEADS
    for number in (1e-4, 1e-2, 0.1, 1.0, 10.0):
        rate = number * np.sqrt(1e3 / solid) / 1e-3
        tau = array(shear_stress(beads(d), rate, d))
        seen = rate * 1e-3 / np.sqrt(-np.trace(tau) / d / solid)
        want = rest + rise / (half / seen + 1)
        np.testing.assert_allclose(friction(tau), want, rtol=1e-5)


def test_friction_in_plane_shear_is_the_sine_of_the_angle(x64):
    # It is not its tangent: at constant volume the sheared plane is not the closest to failure.
    for angle in np.deg2rad([20.0, 30.0, 36.1]):
        tau = array(shear_stress(DruckerPrager(1e7, 0.3, angle, plane=True), 1.0, 2))
        np.testing.assert_allclose(friction(tau), np.sin(angle), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_the_finest_grains_have_the_same_friction_at_every_rate(x64, d):
    fine, plain = beads(d, 1e-13), beads(d, None)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a = b = plain.rest(jnp.ones(()), d)
        for _ in range(10):
            rate = mat(rng.normal(size=(d, d)) - 0.3 * np.eye(d))
            (a, one), (b, two) = stress(fine, a, rate, 0.03), stress(plain, b, rate, 0.03)
            np.testing.assert_allclose(array(one), array(two), rtol=1e-7, atol=1e-7 * 1e7)
            np.testing.assert_allclose(a.history, b.history, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_large_step_ends_where_the_law_meets_the_strain_it_relaxed(x64, seed):
    # The shear stress after the step is t = mu(I) p at the rate (trial - t) / (shear modulus dt).
    rest, rise, half, solid = BEADS
    stretch = np.eye(3) + np.random.default_rng(seed).uniform(-0.2, 0.2, (3, 3)) - 0.3 * np.eye(3)
    law, dt = beads(3, 0.05, 1e4), 0.1
    _, tau = stress(law, law.rest(jnp.ones(()), 3), mat((stretch - np.eye(3)) / dt), dt)
    e = np.log(np.linalg.svd(stretch, compute_uv=False))
    shear, bulk = 1e4 / 2.6, 1e4 / 1.2
    p, trial = -bulk * e.sum(), 2**0.5 * shear * np.linalg.norm(e - e.mean())

    def residual(t):
        number = (trial - t) / (shear * dt) * 0.05 * np.sqrt(solid / p)
        return t / p - rest - rise * number / (half + number)

    want = brentq(residual, 0, trial) / p if residual(trial) > 0 else trial / p
    np.testing.assert_allclose(friction(array(tau))[0], want, rtol=1e-9)
    assert rest + 0.03 < want < rest + rise or want == trial / p


def mean_speed(state):
    return jnp.mean(state.bodies[0].v[:, 0])


def layer(slope, sand, cells, end, density=1500.0):
    """Run a layer 1 m deep from rest on a periodic slope with a sticking floor.

    It returns the mean velocity in ten frames.
    """
    dx, angle = 1 / cells, np.arctan(slope)
    body = Body(fill_box((0.0, 0.0), (4 * dx, 1.0), dx / 2), sand, (dx / 2) ** 2, density)
    grid = Grid(dx, (4, int(1.25 * cells)), faces=("periodic", "stick"))
    scene = Scene((body,), grid, gravity=(G * np.sin(angle), -G * np.cos(angle)))
    return simulate(scene, end, frames=10, measure=mean_speed)


@pytest.mark.slow
def test_a_layer_slides_with_the_friction_of_plane_shear():
    # tan 30 degrees is 0.577; the excess over sin 30 = 0.5 is the grid's error.
    slope = np.tan(np.deg2rad(35))
    seen = []
    for cells in (8, 16):
        sand = DruckerPrager(1.6e7, friction_angle=np.deg2rad(30), plane=True)
        speed = layer(slope, sand, cells, 1.0, 1600.0).history
        gain = (speed[-1] - speed[5]) / 0.5 / (G * np.cos(np.arctan(slope)))
        seen.append(slope - gain)
    assert 0.5 < seen[1] < 0.54 and seen[1] < seen[0] < 0.56, seen


@pytest.mark.slow
def test_a_layer_on_a_slope_flows_as_bagnold_says(number=0.1, end=8.0):
    """v(y) = 2/3 I / d sqrt(rho / rho_s g cos a) (H^1.5 - (H - y)^1.5), with mu(I) = tan a."""
    rest, rise, half, solid = BEADS
    slope = rest + rise / (half / number + 1)
    run = layer(slope, beads(2, 0.2, 300 * 1500 * G), 16, end)
    scale = 2 / 3 * number / 0.2 * np.sqrt(1500 / solid * G * np.cos(np.arctan(slope)))
    y, v = (np.asarray(a) for a in (run.state.bodies[0].x[:, 1], run.state.bodies[0].v[:, 0]))
    want = scale * (1 - np.maximum(1 - y, 0) ** 1.5)
    np.testing.assert_allclose(run.history[-1], 0.6 * scale, rtol=0.01)
    assert np.sqrt(np.mean((v - want) ** 2)) < 0.02 * scale


@pytest.mark.slow
@pytest.mark.parametrize(
    "aspect, cells",
    [
        (2.0, 40),  # the others take many minutes
        *(pytest.param(*COLUMNS[i], marks=pytest.mark.release) for i in (0, 3)),
    ],
)
def test_a_column_of_sand_runs_out_as_measured(aspect, cells):
    """Depth ends at two grains; Lube et al. (2005), doi:10.1103/PhysRevE.72.041301."""
    law, within = float(laws(aspect)[0]), 0.15 if aspect <= 1 else 0.2
    coarse, fine = (measures(column(aspect, n), n)[1] for n in (cells // 2, cells))
    # It still grows as dx falls to zero, by the same amount at most: the error is of first order.
    np.testing.assert_allclose([fine, 2 * fine - coarse], law, rtol=within)
    assert abs(fine - coarse) < 0.1 * law
