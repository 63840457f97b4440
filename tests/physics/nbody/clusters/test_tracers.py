"""Steps of massless bodies: their order, their error, and the use of remembered derivatives."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from field_shapes import check_shapes
from nbody_inputs import halves

from jaxgpu.physics.nbody.clusters import Hermite, Tracers, tracers
from jaxgpu.physics.nbody.orbits import kepler

SUN = np.zeros((6, 1))
step = jax.jit(Hermite.step)


@jax.jit
def init(spec, stars, m, tracers):
    return spec.init(*halves(stars), m, halves(tracers))


def orbit(e, times):
    """Return states [6, T] about a unit mass: semi-major axis 1, at the apocentre at time 0."""
    x, v = jnp.array([1 + e, 0, 0.0]), jnp.array([0, np.sqrt((1 - e) / (1 + e)), 0.0])
    both = jax.vmap(lambda t: jnp.concatenate(kepler.drift(x, v, jnp.ones(()), t)))
    return both(jnp.asarray(times)).T


def derivatives(x):
    """Return acceleration, jerk, snap and crackle [12, K] of states [6, K] about a unit mass."""
    pull = lambda x: -x[:3] / (jnp.sum(x[:3] ** 2, 0) ** 1.5)[None]
    path_slope = lambda f: lambda x: jax.jvp(f, (x,), (jnp.concatenate([x[3:], pull(x)]),))[1]
    chain = [pull]
    for _ in range(3):
        chain.append(path_slope(chain[-1]))
    return jnp.concatenate([f(x) for f in chain])


@pytest.mark.slow
def test_error_shrinks_as_the_sixth_power_of_the_step(x64):
    """Use equal steps on an orbit of e = 0.3, with the previous step known from Kepler's orbit."""
    error = []
    for depth in (7, 8, 9):
        spec = Hermite(interval=2 * np.pi, longest=depth, shortest=depth)
        h = 2 * np.pi / 2**depth
        start = orbit(0.3, [0.0, -h])
        state, known = init(spec, SUN, jnp.ones(1), start[:, :1]), derivatives(start)
        bodies = replace(state.tracers, s=known[6:, :1], past=known[:6, 1:], gap=jnp.full(1, h))
        end = step(spec, replace(state, tracers=bodies)).tracers
        error.append(np.abs(end.x - start[:, :1]).max())
    order = np.log2(np.divide(error[:-1], error[1:]))
    np.testing.assert_allclose(order, 6, atol=0.15)
    assert check_shapes(state.tracers)["M"] == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_polynomial_of_degree_five_is_followed_exactly(x64, seed):
    """The ratio of the last two steps is arbitrary; derivatives at the end are exact, too."""
    random = np.random.default_rng(seed)
    p = [np.polynomial.Polynomial(random.normal(size=6)) for _ in range(3)]
    g, h = random.uniform(0.1, 0.4), 0.25
    derivs_at = lambda t, *orders: jnp.array(
        [q.deriv(k)(t) if k else q(t) for k in orders for q in p]
    )
    start = np.zeros(6)
    old = Tracers(
        jnp.asarray(start)[:, None],
        derivs_at(0.0, 0, 1)[:, None],
        derivs_at(0.0, 2, 3)[:, None],
        derivs_at(-g, 0, 1)[:, None],
        jnp.array([g]),
        jnp.zeros(1),
        jnp.full(1, h),
        jnp.ones(1, jnp.int32),
    )
    spec = Hermite(interval=1.0)
    new, _ = tracers.correct(spec, old, derivs_at(h, 0, 1)[:, None], jnp.asarray(h))
    v = [q.integ(1)(h) - q.integ(1)(0) for q in p]
    x = [q.integ(2)(h) - q.integ(2)(0) - h * q.integ(1)(0) for q in p]
    np.testing.assert_allclose(new.x[:, 0], x + v, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(new.s[:, 0], derivs_at(h, 2, 3), rtol=1e-9, atol=1e-10)


@pytest.mark.slow
def test_an_eccentric_orbit_is_as_exact_as_that_of_a_star_in_fewer_steps(x64):
    """Run ten orbits at e = 0.9; a star of negligible mass takes Aarseth's steps."""
    x = orbit(0.9, [0.0])
    error, steps = [], []
    for stars, m, followed in (
        (np.hstack([SUN, x]), [1, 1e-15], np.zeros((6, 0))),
        (SUN, [1.0], x),
    ):
        spec = Hermite(interval=2 * np.pi / 8)
        state = init(spec, jnp.asarray(stars), jnp.array(m, float), jnp.asarray(followed))
        for _ in range(80):
            state = step(spec, state)
        end = np.hstack([state.stars.x[:, 1:], state.tracers.x])[:, 0]
        energy = (end[3:] ** 2).sum() / 2 - 1 / np.sqrt((end[:3] ** 2).sum())
        error.append(abs(energy + 0.5))
        steps.append(int(state.blocks))
    assert error[1] < 0.5 * error[0] and steps[1] < 0.75 * steps[0], (error, steps)


def test_a_step_much_longer_ago_is_forgotten(x64):
    """If the last step was over four times this one, the result uses the two ends only."""
    f = jnp.asarray(np.random.default_rng(0).normal(size=(6, 1)))
    spec = Hermite(interval=1.0)
    zero, one, alone = jnp.zeros((6, 1)), jnp.ones(1), jnp.ones(1, jnp.int32)
    new = {}
    for gap in (0.0, 0.49, 0.51, 1.0):
        old = Tracers(zero, zero, zero, zero + 3, gap * one, 0 * one, one / 8, alone)
        new[gap] = np.asarray(tracers.correct(spec, old, f, jnp.asarray(0.125))[0].x)
    np.testing.assert_array_equal(new[0.0], new[0.51])
    np.testing.assert_array_equal(new[0.0], new[1.0])
    assert (new[0.49] != new[0.0]).all()


def test_a_step_is_aarseths_until_its_error_is_known_and_then_that_of_the_error(x64):
    """Check Aarseth (2003), eq. 2.13, of a, jerk, snap and crackle, or the error's step.

    The latter is (0.0375 eta^2 a / error)^(1/4), at most sqrt(12.5) times Aarseth's, and unlimited
    without force.
    """
    eta, h = 0.03, 0.2
    f, s = np.random.default_rng(1).normal(size=(2, 6, 7))
    error = np.array([np.inf, 1e-6, 1e-5, 1e-12, 0.0, 1e-6, 1e-6])
    f[:, 5] = s[:, 6] = 0  # no force at all, and one whose derivatives are unknown
    a, jerk, snap, crackle = (np.linalg.norm(q, axis=0) for q in (f[:3], f[3:], s[:3], s[3:]))
    below = np.where(np.arange(7) < 6, jerk * crackle + snap**2, 1)
    aarseth = np.sqrt(eta * (a * snap + jerk**2) / below)
    of_error = h * (0.0375 * eta**2 * a / np.maximum(error, 1e-300)) ** 0.25
    want = np.minimum(of_error, np.sqrt(12.5) * aarseth)
    want[0], want[5:] = aarseth[0], np.inf
    assert (want[1:3] == of_error[1:3]).all() and (want[3:5] > of_error[1]).all()
    rows = tuple(jnp.asarray(f)), tuple(jnp.asarray(s))
    got = tracers._desired_step(Hermite(eta=eta), *rows, jnp.full(7, h), jnp.asarray(error))
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_prediction_is_the_taylor_series_to_the_crackle(x64):
    derivatives = np.random.default_rng(5).normal(size=(6, 3, 4))
    x, v, a, j, s, c = derivatives
    t, interval, now = np.array([0.0, 0.25, 0.375, 0.5]), 1.4, 0.5
    stack_xv = lambda p, q: jnp.asarray(np.concatenate([p, q]))
    one = jnp.ones(4)
    group = Tracers(
        stack_xv(x, v),
        stack_xv(a, j),
        stack_xv(s, c),
        stack_xv(a, j),
        one,
        jnp.asarray(t),
        one,
        one.astype(int),
    )
    got = tracers.predict(Hermite(interval=interval), group, jnp.float64(now))
    h = interval * (now - t)
    position = x + h * v + h**2 / 2 * a + h**3 / 6 * j + h**4 / 24 * s + h**5 / 120 * c
    velocity = v + h * a + h**2 / 2 * j + h**3 / 6 * s + h**4 / 24 * c
    np.testing.assert_allclose(got, np.concatenate([position, velocity]), rtol=1e-13)
