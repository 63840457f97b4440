"""Regularised two-body motion: against mpmath, through collisions, and its identities."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from conformance import check

from jaxgpu.physics.nbody.orbits import kepler, ks

M = 1.3


def pericenter_state(e, q):
    """Return position and velocity [3] at distance q, of an orbit of eccentricity e."""
    return np.array([q, 0.0, 0.0]), np.array([0.0, np.sqrt(M * (1 + e) / q), 0.0])


def drift_by(x, v, t, m=M):
    orbit = ks.from_cartesian(x, v, jnp.full(x.shape[1:], m))
    return ks.to_cartesian(ks.advance(orbit, jnp.asarray(t)))


go = jax.jit(drift_by)


def exact(e, q, t):
    """Solve in the plane, by Kepler's equation in 40 digits."""
    with mpmath.workdps(40):
        e, q, m = (mpmath.mpf(float(k)) for k in (e, q, M))
        if e == 1:  # Barker's equation
            b = 3 * mpmath.mpf(t) * mpmath.sqrt(m / (2 * q**3)) / 2
            y = mpmath.cbrt(b + mpmath.sqrt(b * b + 1))
            d = y - 1 / y
            return float(q * (1 - d * d)), float(2 * q * d)
        a = q / (1 - e)
        mean = mpmath.sqrt(m / abs(a) ** 3) * mpmath.mpf(t)
        c, s = (mpmath.cos, mpmath.sin) if e < 1 else (mpmath.cosh, mpmath.sinh)
        kepler = (lambda E: E - e * s(E) - mean) if e < 1 else (lambda E: e * s(E) - E - mean)
        low, high = mpmath.mpf(0), abs(mean) + 5
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (low, middle) if kepler(middle) > 0 else (middle, high)
        minor = mpmath.sqrt(abs(1 - e * e))
        return float(a * (c(low) - e)), float(abs(a) * minor * s(low))


@pytest.mark.parametrize("e", [0.0, 0.3, 0.9, 0.9999, 1.0, 1.5, 10.0])
def test_is_keplers_orbit(x64, e):
    """The error is in the phase: an ulp of the energy, about 1 / (1 - e) ulp, along the orbit."""
    q = 1 - e if e < 1 else 0.7
    for t in (0.01, 0.7, 2.9):
        x, _ = go(*pericenter_state(e, q), t)
        ulps = 1e3 / (1 - e) if e < 1 else 1e3
        np.testing.assert_allclose(x[:2], exact(e, q, t), atol=ulps * 2.3e-16, rtol=0)


@pytest.mark.parametrize("seed", range(5))
def test_there_and_back(x64, seed):
    """Test any orbit of any mass, bound or unbound, in any direction; v is the rate of x."""
    random = np.random.default_rng(seed)
    x, v = random.normal(size=(2, 3))
    m = 10 ** random.uniform(-1, 1)
    y, w = go(x, v, 1.7, m)
    for got, want in zip(go(y, w, -1.7, m), (x, v)):
        np.testing.assert_allclose(got, want, atol=1e-12)
    h = 1e-5
    rate = (go(x, v, 1.7 + h, m)[0] - go(x, v, 1.7 - h, m)[0]) / (2 * h)
    np.testing.assert_allclose(w, rate, atol=1e-7)


def test_passes_through_a_collision(x64):
    """Start at rest at distance 1, e = 1: it returns after a period, through the centre."""
    orbit = ks.from_cartesian(jnp.array([0.0, 0.0, 1.0]), jnp.zeros(3), jnp.float64(M))
    turn = ks.period(orbit)
    np.testing.assert_allclose(turn, 2 * np.pi * np.sqrt(0.5**3 / M), rtol=1e-14)
    step = jax.jit(ks.drift)
    time, s = 0.0, jnp.sqrt(-2 / orbit.h) * np.pi / 50
    for _ in range(50):
        orbit, dt = step(orbit, s)
        time += float(dt)
    np.testing.assert_allclose(time, turn, rtol=1e-13)
    np.testing.assert_allclose(ks.to_cartesian(orbit)[0], [0, 0, 1], atol=1e-13)


@jax.jit
def kick_state(x, v, a):
    """Return the state after a kick of the velocity by 0.3 |x| a, and the energy stored with it."""
    orbit = ks.from_cartesian(x, v, jnp.asarray(M))
    orbit = ks.kick(orbit, jnp.asarray(0.3), a)
    return *ks.to_cartesian(orbit), orbit.h


@pytest.mark.parametrize("seed", range(5))
def test_a_kick_changes_the_velocity_alone(x64, seed):
    random = np.random.default_rng(seed)
    x, v, a = random.normal(size=(3, 3))
    y, w, energy = map(np.asarray, kick_state(x, v, a))
    np.testing.assert_allclose(y, x, atol=1e-14)
    np.testing.assert_allclose(w, v + 0.3 * np.linalg.norm(x) * a, atol=1e-14)
    np.testing.assert_allclose(energy, w @ w / 2 - M / np.linalg.norm(x), atol=1e-14)


def test_apocentre_and_period(x64):
    orbit = ks.from_cartesian(*pericenter_state(0.6, 0.4), jnp.float64(M))
    np.testing.assert_allclose(ks.apocenter(orbit), 1.6, rtol=1e-14)
    away = ks.from_cartesian(*pericenter_state(1.6, 0.4), jnp.float64(M))
    assert np.isinf(ks.apocenter(away)) and np.isinf(ks.period(away))


@pytest.mark.parametrize("of", [ks.apocenter, ks.period])
def test_an_orbit_that_is_not_bound_leaves_the_slopes_of_others_alone(x64, of):
    """One pair separates faster than its period; its own slopes are zero instead of nan."""
    x, v = pericenter_state(0.6, 0.4)
    one = ks.from_cartesian(x, v, jnp.float64(M))
    fast = ks.from_cartesian(x, v + [5.0, 0, 0], jnp.float64(M))
    both = jax.tree.map(lambda *q: jnp.stack(q, -1), one, fast)
    np.testing.assert_array_equal(both.h < 0, [True, False])
    bound = lambda orbit: jnp.sum(jnp.where(orbit.h < 0, of(orbit), 0))
    alone, together = (jax.jit(jax.grad(bound))(orbit) for orbit in (one, both))
    for a, b in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
        np.testing.assert_allclose(b[..., 0], a, rtol=1e-14)
        np.testing.assert_array_equal(b[..., 1], 0)


@pytest.mark.slow
def test_conforms():
    x, v = (k.astype(jnp.float32) for k in pericenter_state(0.3, 0.7))
    orbit = ks.from_cartesian(x, v, jnp.float32(M))
    seen = jax.jit(lambda orbit, s: ks.drift(orbit, s)[1])
    check(seen, orbit, jnp.float32(0.4), differentiable=(0, 1), batched=(0, 1))


@pytest.mark.slow
def test_tangents_match_central_differences(x64):
    x, v = pericenter_state(0.5, 0.8)
    way = np.array([0.3, -0.7, 0.2])
    h = 1e-6
    slope = (go(x + h * way, v, 2.1)[0] - go(x - h * way, v, 2.1)[0]) / (2 * h)
    got = jax.jit(lambda x: jax.jvp(lambda x: drift_by(x, v, 2.1)[0], (x,), (way,))[1])(x)
    np.testing.assert_allclose(got, slope, atol=1e-8)


@jax.jit
def drift_time(x, v, m, t):
    """Return the duration of a drift whose length was computed for the time `t`."""
    orbit = ks.from_cartesian(x, v, m)
    return ks.drift(orbit, ks.regular_time(orbit, t))[1]


@pytest.mark.parametrize("short", [1e-1, 1.6e-2, 1e-4, 1e-6])
def test_a_guess_that_falls_on_the_pericentre_is_no_trap(x64, short):
    """Laguerre's step is 1 / (1 - e) from there, and once ended in nan; 1 - e is `short`."""
    e, begin = 1 - short, np.linspace(-3.1, 3.1, 401)  # eccentric; the guess adds mean motion to it
    across, flat = np.sqrt(1 - e * e), np.zeros(401)
    x = np.stack([np.cos(begin) - e, across * np.sin(begin), flat])
    v = np.stack([-np.sin(begin), across * np.cos(begin), flat]) / (1 - e * np.cos(begin))[None]
    fast = 10 ** np.random.default_rng(4).uniform(-0.5, 0.5, 401)  # the roots of the masses
    found = drift_time(x, v * fast, fast**2, -begin / fast)
    np.testing.assert_allclose(found * fast, -begin, rtol=0, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_a_hyperbola_is_followed_far(x64, seed):
    """Test up to 1e9 pericentres on both sides, where the error was up to 1e42 from 1e5 on."""
    random = np.random.default_rng(seed)
    e, q = 1 + 10 ** random.uniform(-1, 2, 8), 10 ** random.uniform(-2, 1, 8)
    far = 10 ** random.uniform(4, 9, 8) * random.choice([-1, 1], 8)
    t = far * q / np.sqrt(M * (e - 1) / q)  # distance over the speed at infinity
    for k in range(8):
        x, v = pericenter_state(e[k], q[k])
        got, speed = go(x, v, t[k])
        # Kepler's equation is even: states before the pericentre mirror those after it.
        want = exact(e[k], q[k], abs(t[k])) * np.array([1, np.sign(t[k])])
        # The angle, of order tens, is known to an ulp, and the energy to e / (e - 1) ulp.
        np.testing.assert_allclose(got[:2], want, atol=1e-14 / (1 - 1 / e[k]) * np.abs(want).max())
        back = go(got, speed, -t[k])[0]
        assert np.isfinite(back).all()


@pytest.mark.slow
def test_the_far_solution_meets_the_near_one_and_keplers(x64):
    """Solutions are continuous where the formula changes, and equal `kepler.drift` far away."""
    t = np.concatenate([np.geomspace(0.1, 1e12, 40), -np.geomspace(0.1, 1e12, 40)])
    x, v = (np.repeat(q, 80, axis=1) for q in ([[1.0], [0.2], [0.1]], [[0.1], [4.0], [0.3]]))
    got = go(x, v, t)
    want = jax.jit(kepler.drift)(x.T, v.T, M, t)
    for one, two in zip(got, (q.T for q in want)):
        size = np.linalg.norm(two, axis=0)
        assert (np.linalg.norm(one - two, axis=0) / size).max() < 1e-13


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
def test_an_ellipse_of_any_size_is_followed_from_its_pericentre(x64, size):
    """Test at a quarter of a period, where the eccentric anomaly exceeds the mean one by most."""
    x, v = pericenter_state(0.9, 0.1)
    turn = 2 * np.pi * np.sqrt(size**3 / M)
    got, _ = go(x * size, v / np.sqrt(size), 0.25 * turn)
    want = exact(0.9, 0.1, 0.25 * 2 * np.pi / np.sqrt(M))  # Kepler's third law
    np.testing.assert_allclose(got[:2] / size, want, atol=1e-12)


def test_times_that_are_no_numbers_are_refused(x64):
    orbit = ks.from_cartesian(*pericenter_state(0.3, 0.7), jnp.float64(M))
    for bad in (np.nan, np.inf):
        with pytest.raises(
            ValueError, match=f"ks.regular_time: t={bad}; it must be a finite number"
        ):
            ks.advance(orbit, bad)
