"""Sixth-order block steps: order, conservation, passivity, REBOUND, tangents."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rebound
from conformance import check
from jax import lax
from nbody_inputs import halves, masses, points
from shapes import check_shapes

from jaxgpu.physics.nbody.clusters import Hermite6
from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import plummer
from jaxgpu.precision import reassociation

NOBODY = np.zeros((6, 0))
energies = jax.jit(lambda x, m, softening: diagnostics.energy(*halves(x), m, softening))


def sphere(seed, count):
    """A Plummer sphere, positions over velocities [6, count]."""
    return points(plummer(jax.random.key(seed), count))


def pair(e, m=(0.75, 0.25)):
    """A binary of semi-major axis 1 and total mass 1 at its apocentre: period 2 pi."""
    x = np.zeros((6, 2))
    part = np.array([m[1], -m[0]])
    x[0], x[4] = (1 + e) * part, np.sqrt((1 - e) / (1 + e)) * part
    return x, np.array(m)


def walk(spec, stars, m, tracers, count):
    state = spec.init(*halves(stars), m, halves(tracers))
    return lax.fori_loop(0, count, lambda _, s: spec.step(s), state)


gone = jax.jit(walk)
fast = jax.jit(walk, compiler_options=reassociation())


@pytest.mark.slow
def test_error_shrinks_as_the_sixth_power_of_the_step(x64):
    """With equal steps: longest = shortest."""
    stars, m = pair(0.3)
    error = []
    for depth in (7, 8):
        spec = Hermite6(interval=2 * np.pi, longest=depth, shortest=depth)
        error.append(np.abs(gone(spec, stars, m, NOBODY, 1).stars.x - stars).max())
    order = np.log2(np.divide(error[:-1], error[1:]))
    np.testing.assert_allclose(order, 6, atol=0.15)


def test_the_error_falls_with_eta_as_the_order_says(x64):
    """Ten orbits at e = 0.9 with individual steps: at least eta^5 overall; the paper has eta^6."""
    stars, m = pair(0.9)
    drift = []
    for eta in (0.4, 0.2):
        spec = Hermite6(jnp.asarray(eta), interval=2 * np.pi / 8)
        end = gone(spec, stars, m, NOBODY, 80).stars.x
        drift.append(abs(float(sum(energies(end, m, 0.0))) / (-0.75 * 0.25 / 2) - 1))
    assert drift[0] < 2e-5 and drift[0] / drift[1] > 2**5, drift


@pytest.mark.parametrize("seed", range(5))
def test_a_cluster_keeps_what_it_must(x64, seed):
    stars = sphere(seed, 128)
    m = jnp.asarray(masses(128, seed))
    spec = Hermite6(interval=0.25, softening=1e-3)
    state = fast(spec, stars, m, NOBODY, 4)
    end = state.stars.x
    assert state.regularised == 0
    energy = lambda x: sum(energies(x, m, 1e-3))
    # 1e-7 of equal stars; an encounter errs as the product of two masses, and (<m^2> / <m>^2)^2
    # is 5.5. Half of eta divides the worst of the five by 96, as the order says (2^6)
    assert abs(energy(end) / energy(stars) - 1) < 5.5e-7
    # block steps do not obey Newton's third law exactly, only as well as the steps are accurate
    assert np.abs(np.asarray((end - stars) @ m)[3:]).max() < 1e-7
    spin = lambda x: np.cross(np.asarray(x[:3]).T, np.asarray(x[3:]).T).T @ np.asarray(m)
    assert np.abs(spin(end) - spin(stars)).max() < 1e-7


@pytest.mark.slow
def test_agrees_with_rebound(x64):
    """64 stars and 64 massless bodies, a unit of time, against IAS15."""
    stars, tracers = (sphere(k, 64) for k in (3, 4))
    sim, m = rebound.Simulation(), masses(64, 34)
    for weights, group in ((m, stars), (np.zeros(64), tracers)):
        for mass, b in zip(weights, np.asarray(group).T):
            sim.add(m=mass, x=b[0], y=b[1], z=b[2], vx=b[3], vy=b[4], vz=b[5])
    sim.N_active, sim.integrator, sim.softening = 64, "ias15", 0.02
    sim.integrate(1.0)
    theirs = np.array([[p.x, p.y, p.z] for p in sim.particles]).T
    spec = Hermite6(eta=0.1, softening=0.02, interval=0.25)
    ours = fast(spec, stars, m, tracers, 4)
    np.testing.assert_allclose(ours.stars.x[:3], theirs[:, :64], atol=3e-10)
    np.testing.assert_allclose(ours.tracers.x[:3], theirs[:, 64:], atol=3e-10)


def light_one():
    """33 stars the last of which weighs nothing to speak of, and how to integrate them."""
    return sphere(5, 33), np.append(masses(32, 5), 1e-15), dict(softening=1e-2, interval=0.25)


@pytest.mark.slow
def test_massless_bodies_never_touch_the_stars(x64):
    stars, m, how = light_one()
    spec = Hermite6(**how)
    alone = fast(spec, stars[:, :-1], m[:-1], NOBODY, 2)
    joined = fast(spec, stars[:, :-1], m[:-1], stars[:, -1:], 2)
    jax.tree.map(np.testing.assert_array_equal, joined.stars, alone.stars)
    for group in (joined.stars, joined.tracers):
        assert (np.asarray(group.t) == 1).all()
        assert (np.frexp(np.asarray(group.dt))[0] == 0.5).all()
    assert check_shapes(joined.stars)["N"] == 32 and joined.floored == 0


@pytest.mark.slow
def test_a_massless_body_moves_as_a_very_light_star(x64):
    stars, m, how = light_one()
    none = gone(Hermite6(**how), stars[:, :-1], m[:-1], stars[:, -1:], 2)
    light = gone(Hermite6(**how), stars, m, NOBODY, 2)
    np.testing.assert_allclose(none.tracers.x[:, 0], light.stars.x[:, -1], atol=1e-9)


@pytest.mark.slow
def test_tangents_match_central_differences(x64):
    stars, m = jnp.asarray(sphere(8, 8)), jnp.asarray(masses(8, 8))
    spec = Hermite6(softening=0.1)
    go = jax.jit(lambda x: walk(spec, x, m, jnp.zeros((6, 0)), 2).stars.x)
    tangent = jax.random.normal(jax.random.key(1), stars.shape)
    h = 1e-6
    slope = (go(stars + h * tangent) - go(stars - h * tangent)) / (2 * h)
    got = jax.jvp(go, (stars,), (tangent,))[1]
    np.testing.assert_allclose(got, slope, atol=1e-7 * np.abs(slope).max())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_conforms(x64, dtype):
    stars = jnp.asarray(sphere(0, 12), dtype)
    spec = Hermite6(softening=0.1, shortest=12)
    m = jnp.asarray(masses(12, 0), dtype)
    state = spec.init(*halves(stars), m, halves(stars[:, :5] * 1.25))
    seen = jax.jit(lambda state: (lambda s: (s.stars.x, s.tracers.x))(spec.step(state)))
    check(seen, state, rtol=1e-3 if dtype == jnp.float32 else 1e-9)


def test_wrong_shapes_are_refused(x64):
    two, three, m = jnp.zeros((2, 3)), jnp.eye(3), jnp.ones(3)
    with pytest.raises(ValueError, match=r"Hermite6.init: m has shape \[3\]; it must be \[2\]"):
        Hermite6().init(two, two, m)
    with pytest.raises(ValueError, match=r"tracers.x has shape \[2, 6\]; it must be \[N, 3\]"):
        Hermite6().init(three, three, m, (jnp.zeros((2, 6)), two))
