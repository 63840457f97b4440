"""Clusters in a galaxy: orbits against SciPy's integration, and the tide of a point mass."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from nbody_inputs import halves
from scipy.integrate import solve_ivp

from jaxgpu.physics.nbody import units
from jaxgpu.physics.nbody.clusters import Hermite, Hermite6
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.physics.nbody.models import globulars

SCALE = units.Scale(mass=2e4, length=10.0)
SIXTH = Hermite6(eta=0.2)


def run_falling(field, origin, stars, m, tracers, count, spec=SIXTH):
    def walk(origin, stars, tracers):
        falling = replace(spec, tide=tide.Tide(field, origin))
        state = falling.init(*halves(stars), m, halves(tracers))
        return lax.fori_loop(0, count, lambda _, s: falling.step(s), state)

    run_once = {"xla_backend_optimization_level": 0}
    return jax.jit(walk, compiler_options=run_once)(origin, stars, tracers)


@pytest.mark.slow
def test_massless_bodies_follow_their_own_orbits_through_the_milky_way(x64):
    """Run 5 units (52 Myr) about a massless Palomar 5, each body against SciPy in the galaxy."""
    start = globulars.galactocentric(globulars.load("Pal 5"))
    start = np.concatenate([start[0] * 1000 / SCALE.length, start[1] / SCALE.velocity])
    field = potentials.scaled_milky_way(SCALE)
    random = np.random.default_rng(0)
    tracers = random.normal(size=(6, 7))
    stars, m = np.array([[500.0], [0], [0], [0], [0], [0]]), jnp.array([1e-9])  # out of the way
    origin = tide.Origin(jnp.asarray(start[:3]), jnp.asarray(start[3:]))
    end = run_falling(field, origin, stars, m, tracers, 40)
    pull = jax.jit(field.pull)
    rate = lambda t, y: np.concatenate([y[3:], np.asarray(pull(y[:3]))])
    orbit = lambda y: solve_ivp(rate, (0, 5), y, "DOP853", rtol=1e-12, atol=1e-11).y[:, -1]
    centre = orbit(start)
    got = np.concatenate([end.origin.x, end.origin.v])
    np.testing.assert_allclose(got, centre, rtol=1e-10)
    for k in (0, 3):
        # Coordinates are 2e3, with SciPy's relative accuracy of 1e-12.
        np.testing.assert_allclose(
            end.tracers.x[:, k], orbit(start + tracers[:, k]) - centre, atol=3e-8
        )


@pytest.mark.slow
@pytest.mark.parametrize("spec", [SIXTH, Hermite(eta=1e-3)])
def test_two_stars_in_a_field_of_their_own_scale(x64, spec):
    """A binary about a point mass equals a three-body system: the third body's tide, to rounding.

    A massless body is included.
    """
    gm, distance = 1e4, 50.0
    v = np.sqrt(gm / distance)
    origin = tide.Origin(jnp.array([distance, 0, 0]), jnp.array([0, v, 0.0]))
    stars = np.array([[0.5, -0.5], [0, 0], [0, 0], [0, 0], [0.6, -0.6], [0.3, -0.3]])
    tracer = np.array([[0.0, 1.5, 0.2, 0.7, 0, 0]]).T
    end = run_falling(potentials.PointMass(gm), origin, stars, jnp.full(2, 0.5), tracer, 16, spec)

    def rate(t, y):
        x = y[:9].reshape(3, 3)
        pull = lambda a, b: 0.5 * (b - a) / np.linalg.norm(b - a) ** 3
        a = -gm * x / np.linalg.norm(x, axis=1, keepdims=True) ** 3
        a += [pull(x[0], x[1]), pull(x[1], x[0]), pull(x[2], x[0]) + pull(x[2], x[1])]
        return np.concatenate([y[9:], a.ravel()])

    bodies = np.hstack([stars, tracer])
    begin = np.concatenate(
        [(bodies[k : k + 3].T + np.asarray(q)).ravel() for k, q in ((0, origin.x), (3, origin.v))]
    )
    want = solve_ivp(rate, (0, 2), begin, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    got = np.hstack([end.stars.x[:3], end.tracers.x[:3]]).T + np.asarray(end.origin.x)
    np.testing.assert_allclose(got, want[:9].reshape(3, 3), atol=2e-8)


def test_a_circular_origin_comes_back(x64):
    """Run one orbit in eight intervals of one Gauss-Radau step each."""
    origin = tide.Origin(jnp.array([1.0, 0, 0]), jnp.array([0, 1.0, 0]))
    well = tide.Tide(potentials.PointMass(1.0), origin)
    start = origin
    fall = jax.jit(lambda origin: well.move_origin(well.path(origin, 2 * np.pi / 8), origin))
    for _ in range(8):
        origin = fall(origin)
    np.testing.assert_allclose(origin.x, start.x, atol=1e-9)
    np.testing.assert_allclose(origin.v, start.v, atol=1e-9)


@pytest.mark.slow
def test_a_body_that_falls_with_the_origin_feels_nothing(x64):
    """Expect bitwise zero: steps would amplify a remainder as noise."""
    origin = tide.Origin(jnp.array([800.0, 3, 7]), jnp.array([1.0, 90, 2]))
    well = tide.Tide(potentials.scaled_milky_way(SCALE), origin)

    @jax.jit
    def felt_pull(origin):
        path = well.path(origin, 0.125)
        return [well.pull(path, jnp.asarray(0.3), jnp.zeros((9, count))) for count in (1, 13)]

    assert not any(np.asarray(none).any() for none in felt_pull(origin))


# A Plummer sphere of mass 1 and scale 1/4 on a circle about a point mass; its tidal radius is 1.
CORE, OMEGA, FAR = 0.25, np.sqrt(1 / 3), 100.0
EDGE = np.sqrt(1 - CORE**2)  # where its pull and the tide balance


def jacobi(x):
    """Return the potential in the frame that rotates with the orbit; z is the orbit's axis."""
    well = 1 / np.sqrt((x**2).sum(0) + CORE**2)
    return -well - OMEGA**2 / 2 * (3 * x[0] ** 2 - x[2] ** 2)


def on_shell(energy, count, random):
    """Return states [6, count] within the edge, uniform on an energy shell, and its volume."""
    box = np.array([EDGE, 0.8, 0.8])[:, None]
    x = random.uniform(-1, 1, (3, 60 * count)) * box
    speed = np.sqrt(np.maximum(2 * (energy - jacobi(x)), 0))
    top = np.sqrt(2 * (energy - jacobi(np.zeros(3))))
    kept = np.flatnonzero(random.uniform(0, top, speed.size) < speed)[:count]
    x, v = x[:, kept], speed[kept]
    way = random.normal(size=x.shape)
    volume = 4 * np.pi * speed.mean() * np.prod(2 * box)
    return np.vstack([x, v * way / np.linalg.norm(way, axis=0)]), volume


@pytest.mark.slow
def test_escape_is_the_flux_over_the_saddles(x64):
    """Compare the flux with the square of the energy above the edge's.

    Fukushige & Heggie (2000), doi:10.1046/j.1365-8711.2000.03811.x: of a uniformly filled energy
    shell, 2 pi^2 E^2 / (w1 w2) leaves over each of the two saddles per unit of time; w1 and w2 are
    the frequencies across. A single star with Plummer's softening is the cluster, and massless
    bodies leave it for the galaxy.
    """
    count, until, dt, above = 8000, 2.0, 1 / 16, np.array([0.03, 0.06, 0.12])
    random = np.random.default_rng(0)
    depth = jacobi(np.array([EDGE, 0, 0]))
    shells = [on_shell(depth * (1 - e), count, random) for e in above]
    flux = 2 * 2 * np.pi**2 * (depth * above) ** 2 / (np.sqrt(3) * OMEGA * 2 * OMEGA)
    tracers = np.hstack([states for states, _ in shells])
    tracers[3:] += np.cross([0, 0, OMEGA], tracers[:3].T).T
    field = potentials.PointMass(OMEGA**2 * FAR**3)
    origin = tide.Origin(jnp.array([FAR, 0, 0]), jnp.array([0, OMEGA * FAR, 0]))
    spec = Hermite(0.05, CORE, dt, tide=tide.Tide(field, origin), longest=0)
    still = np.zeros((1, 3))
    init = jax.jit(Hermite.init)
    state = init(spec, still, still, np.ones(1), halves(tracers))
    step, gone = jax.jit(Hermite.step), np.zeros(tracers.shape[1], bool)
    for k in range(round(until / dt)):
        state = step(spec, state)
        x, turned = np.asarray(state.tracers.x), OMEGA * dt * (k + 1)
        gone |= np.abs(np.cos(turned) * x[0] + np.sin(turned) * x[1]) > EDGE
    left = gone.reshape(above.size, count).sum(1)
    want = flux * until * count / np.array([volume for _, volume in shells])
    # Allow three deviations of the count, and the saddles' deviation from a quadratic.
    assert (np.abs(left - want) < 3 * np.sqrt(want) + 0.04 * want).all(), (left, want)
    slope = np.polyfit(np.log(above), np.log(left / want * flux), 1)[0]
    assert abs(slope - 2) < 0.2, slope


def test_who_is_alone_feels_no_pull_from_outside():
    pull = tide.NoTide().pull((), jnp.float32(0.5), jnp.ones((6, 5), jnp.float32))
    np.testing.assert_array_equal(pull, np.zeros((9, 5), np.float32))
