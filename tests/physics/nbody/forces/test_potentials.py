"""External fields: galpy, gradients, Laplace's equation and closed forms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check
from scipy.stats import kstest

from jaxgpu.physics.nbody import units
from jaxgpu.physics.nbody.forces import potentials
from jaxgpu.physics.nbody.models import plummer
from jaxgpu.physics.nbody.steps.leapfrog import Leapfrog
from jaxgpu.runs.loop import rollout

# MWPotential2014 of galpy 1.12.1, R0 = v0 = 1: R, z, potential, radial and vertical force.
GALPY = np.array(
    [
        (
            1.6588096599049031,
            0.10131178015855737,
            -0.889587096049065,
            -0.5266030889157983,
            -0.08424433204311123,
        ),
        (
            0.16920926038335096,
            0.10306559625924812,
            -2.6792184400402643,
            -2.178747352601889,
            -3.3242513281607704,
        ),
        (
            0.04079702687862322,
            0.01804024031208675,
            -3.376484359056979,
            -4.378965019730298,
            -3.739161394088499,
        ),
        (
            0.03504488312347071,
            -0.024397059600674478,
            -3.3729047984371885,
            -4.018915835358644,
            5.003942547116496,
        ),
        (
            4.963975688541134,
            2.4838045959458555,
            0.042358308597090666,
            -0.10502421938199177,
            -0.05406148400207626,
        ),
        (
            9.213827106622219,
            -6.016446616838167,
            0.4473243351205658,
            -0.03971610180496479,
            0.026135270494685732,
        ),
        (
            1.373778118203973,
            0.4416938778445506,
            -0.9900162554398652,
            -0.5527031942070948,
            -0.2469777604510462,
        ),
        (
            2.9487687449450433,
            -1.3389831959920793,
            -0.3352782509568686,
            -0.20582069555246896,
            0.10061483906297447,
        ),
    ]
).T


def places(seed, count=20, low=-1.5, high=1.5):
    random = np.random.default_rng(seed)
    x = random.normal(size=(3, count))
    x = x / np.linalg.norm(x, axis=0) * 10 ** random.uniform(low, high, count)
    return x.T


FIELDS = {
    "point": potentials.PointMass(2.0),
    "cusp": potentials.Cusp(0.7, 1.3, 0.8),
    "disc": potentials.MiyamotoNagai(1.5, 0.6, 0.2),
    "halo": potentials.NavarroFrenkWhite(3.0, 1.7, 0.8),
}


@pytest.mark.slow
def test_the_milky_way_is_galpys(x64):
    R, z, potential, radial, vertical = GALPY
    field = potentials.milky_way(1.0, 1.0)
    of = jax.jit(lambda x: (field.pull(x), field.potential(x)))
    pull, depth = map(np.asarray, of(np.array([0.6 * R, 0.8 * R, z]).T))
    np.testing.assert_allclose(pull[:, 0], 0.6 * radial, rtol=1e-13)
    np.testing.assert_allclose(pull[:, 1], 0.8 * radial, rtol=1e-13)
    np.testing.assert_allclose(pull[:, 2], vertical, rtol=1e-13)
    # galpy's bulge has zero potential in the centre; here it is zero far away.
    offset = depth - potential
    np.testing.assert_allclose(offset, offset[0], rtol=1e-14)


def test_scales_to_any_units(x64):
    scale = units.Scale(mass=2e4, length=5.0)
    x = np.array([3.0, -6.0, 1.0])  # kpc
    want = jax.jit(potentials.milky_way().pull)(x)  # (km/s)^2 / kpc
    got = jax.jit(potentials.scaled_milky_way(scale).pull)(x * 1000 / scale.length)
    np.testing.assert_allclose(got * scale.velocity**2 / scale.length * 1000, want, rtol=1e-12)


@pytest.mark.parametrize("name", FIELDS)
def test_the_pull_is_minus_the_gradient(x64, name):
    """Check Laplace's equation, too, where there is no mass: outside a point mass."""
    field, x = FIELDS[name], places(1)
    slope, pull = jax.jit(
        lambda x: (jax.grad(lambda x: field.potential(x).sum())(x), field.pull(x))
    )(x)
    np.testing.assert_allclose(pull, -slope, rtol=1e-11)


def test_density_follows_from_the_pull(x64):
    """Check Poisson's equation, -div(pull) = 4 pi G rho, for the bulge and the halo."""
    x = places(2, 8, -0.5, 0.5)
    r = np.sqrt(np.sum(x * x, 1))
    div = lambda field: jax.jit(jax.vmap(lambda x: jnp.trace(jax.jacfwd(field.pull)(x))))(x)
    cusp, halo = FIELDS["cusp"], potentials.NavarroFrenkWhite(3.0, 1.7)
    want = 4 * np.pi * 0.7 * r**-1.3 * np.exp(-((r / 0.8) ** 2))
    np.testing.assert_allclose(-div(cusp), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(-div(halo), 3.0 / (r * (1.7 + r) ** 2), rtol=1e-9)


def test_the_halo_is_smooth_into_its_centre(x64):
    """A series replaces the closed form where it cancels; the exact limit is GM / (2 a^2)."""
    field = potentials.NavarroFrenkWhite(3.0, 1.7)
    r = np.array([1e-6, 1e-4, 1.699e-3, 1.701e-3, 0.1])
    pull = -np.asarray(jax.jit(field.pull)(np.array([r, 0 * r, 0 * r]).T))[:, 0]
    u = r / 1.7
    exact = 3.0 / 1.7**2 * sum((-u) ** k * (k + 1) / (k + 2) for k in range(40))
    np.testing.assert_allclose(pull, exact, rtol=1e-10)


@pytest.mark.slow
def test_derivatives_along_a_path_are_those_in_time(x64):
    """The path has position x + v t + a t^2 / 2; compare with differences."""
    field = potentials.milky_way(1.0, 1.0)
    x, v, a = np.array([1.0, 0.3, -0.2]), np.array([-0.4, 0.9, 0.3]), np.array([0.5, -0.2, 0.1])
    pull, jerk, snap = jax.jit(partial(potentials.pull_derivatives, field))(x, v, a)
    alone = jax.jit(field.pull)
    pull_at = lambda t: np.asarray(alone(x + t * v + t * t / 2 * a))
    h = 1e-3
    np.testing.assert_allclose(pull, pull_at(0.0), rtol=1e-14)
    np.testing.assert_allclose(
        jerk,
        (8 * (pull_at(h) - pull_at(-h)) - pull_at(2 * h) + pull_at(-2 * h)) / (12 * h),
        rtol=1e-8,
    )
    bend = (
        -pull_at(2 * h) + 16 * pull_at(h) - 30 * pull_at(0.0) + 16 * pull_at(-h) - pull_at(-2 * h)
    ) / (12 * h * h)
    np.testing.assert_allclose(snap, bend, rtol=1e-6)


def test_a_cluster_at_the_tidal_radius_is_balanced(x64):
    """Use the frame that rotates with a circular orbit, to the first order of the tide."""
    x = potentials.tidal_radius(1.0, 1e12, 1e4)
    galaxy = potentials.PointMass(1e12)
    turn = 1e12 / 1e12  # GM / R^3, the square of the angular speed
    pull = lambda r: float(galaxy.pull(jnp.array([r, 0.0, 0.0]))[0])
    rest = pull(1e4 + float(x)) + turn * (1e4 + float(x)) - 1 / float(x) ** 2
    assert abs(rest) < 2e-4 / float(x) ** 2


@pytest.mark.slow
def test_conforms(x64):
    x = places(3, 3).astype(jnp.float32)
    parameters = jnp.ones(2, jnp.float32)

    def f(x, p):
        parts = [
            potentials.PointMass(p[0]),
            potentials.Cusp(p[0], 1.8, p[1]),
            potentials.MiyamotoNagai(p[0], 0.4, p[1]),
            potentials.NavarroFrenkWhite(p[0], p[1], 0.9),
        ]
        field = potentials.Sum(tuple(parts))
        return field.potential(x), field.pull(x)

    check(jax.jit(f), x, parameters, differentiable=(0,), rtol=1e-4)


@pytest.mark.slow
def test_a_plummer_sphere_of_massless_bodies_stays_what_it_is(x64):
    """Run a hundred crossing times in the analytic potential: energies and radii are conserved.

    The radii of a thousand bodies follow Plummer's cumulative mass, before and after.
    """
    b = 3 * np.pi / 16
    field = potentials.MiyamotoNagai(1.0, 0.0, b)  # without a disc: Plummer's
    spec = Leapfrog(lambda t, x: field.pull(x), 283.0 / 11320, 8)
    go = jax.jit(lambda x, v: rollout(spec.step, spec.init(x, v), 11320)[0])
    x0, v0 = jax.jit(plummer, static_argnums=1)(jax.random.key(2), 1000)
    end = go(x0, v0)
    x, v = end.x, end.v
    energy = jax.jit(lambda x, v: jnp.sum(v * v, 1) / 2 + field.potential(x))
    before = energy(x0, v0)
    assert np.abs(energy(x, v) / before - 1).max() < 1e-9
    for place in (x0, x):
        r = np.linalg.norm(place, axis=1)
        mass = lambda r: r**3 / (r * r + b * b) ** 1.5
        assert kstest(r, mass).pvalue > 0.01
