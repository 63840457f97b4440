"""The two-body drift: against sixty digits, Kepler's elements, the group law and differences."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from jaxgpu.physics.nbody.orbits import elements, kepler

MANY = 200  # bodies at a time: one program for most tests
drift = jax.jit(kepler.drift)


def exact(x, v, gm, dt):
    """Solve Kepler's equation in universal variables by bisection, in sixty digits."""
    mp = mpmath.mp
    x, v = ([mpmath.mpf(float(c)) for c in part] for part in (x, v))
    gm, dt = mpmath.mpf(gm), mpmath.mpf(dt)
    dot = lambda a, b: sum(p * q for p, q in zip(a, b))
    r, beta = mp.sqrt(dot(x, x)), 0
    beta = 2 * gm / r - dot(v, v)

    def g(s):
        w = mp.sqrt(mpmath.mpc(beta)) * s
        c = mp.cos(w), mp.sin(w) / w, (1 - mp.cos(w)) / w**2, (w - mp.sin(w)) / w**3
        return [(s**k * c).real for k, c in enumerate(c)]

    def late(s):
        _, _, g2, g3 = g(s)
        return r * s + dot(x, v) * g2 + (gm - beta * r) * g3 > dt

    low, high = mpmath.mpf(0), dt / r
    while not late(high):
        low, high = high, 2 * high
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (low, middle) if late(middle) else (middle, high)
    _, _, g2, g3 = g(low)
    return np.array([float((1 - gm * g2 / r) * a + (dt - gm * g3) * b) for a, b in zip(x, v)])


def conics(seed, count, narrow=-3.0):
    """Return positions on conics with 1 - e down to 10^narrow on both sides, gm = 1."""
    random = np.random.default_rng(seed)
    gap = 10 ** random.uniform(narrow, 0, count)
    e = np.where(random.random(count) < 0.5, 1 - gap, 1 + gap)
    p = 10 ** random.uniform(-1, 1, count) * (1 + e)
    widest = np.where(e < 1, np.pi, np.arccos(-1 / np.maximum(e, 1)) * 0.95)
    f = random.uniform(-1, 1, count) * widest
    r, zero = p / (1 + e * np.cos(f)), np.zeros(count)
    x = np.array([r * np.cos(f), r * np.sin(f), zero])
    v = np.array([-np.sin(f), e + np.cos(f), zero]) / np.sqrt(p)
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    return (turn @ x).T, (turn @ v).T, random.uniform(0.01, 30, count)


@pytest.mark.parametrize("seed", range(5))
def test_matches_sixty_digits(x64, seed):
    x, v, dt = conics(seed, MANY)
    got, _ = drift(x, v, 1.0, dt)
    with mpmath.workdps(60):
        for k in range(6):
            want = exact(x[k], v[k], 1.0, dt[k])
            # The orbit's error of eps / (1 - e) shifts its phase: about 1e3 eps x 30.
            assert np.abs(got[k] - want).max() < 3e-12 * np.linalg.norm(want)


@pytest.mark.slow
def test_follows_the_mean_anomaly_for_a_thousand_turns(x64):
    orbit = elements.sample_uniform(jax.random.key(1), MANY, (0.5, 2.0), 0.95, 3.0)
    gm, dt = 2.5, np.full(MANY, 5000.0)
    state = jax.jit(elements.to_state)
    x, v = drift(*state(orbit, gm), gm, dt)
    mean = np.asarray(orbit.mean) + dt * np.sqrt(gm / np.asarray(orbit.a) ** 3)
    want = state(replace(orbit, mean=mean), gm)
    # The phase of 2e4 radians has a relative error of eps, near a pericentre of 0.05.
    np.testing.assert_allclose(x, want[0], atol=2e4 * 20 * 2**-52 * 20)
    np.testing.assert_allclose(v, want[1], atol=2e4 * 20 * 2**-52 * 400)


@pytest.mark.parametrize("seed", range(5))
def test_two_drifts_are_one_and_back_is_back(x64, seed):
    x, v, dt = conics(seed + 10, MANY)
    whole = drift(x, v, 1.0, dt)
    twice = drift(*drift(x, v, 1.0, 0.375 * dt), 1.0, 0.625 * dt)
    back = drift(*whole, 1.0, -dt)
    size = lambda q: np.linalg.norm(q, axis=1)
    assert (size(twice[0] - whole[0]) / size(whole[0])).max() < 1e-9
    assert (size(back[0] - x) / (size(x) + size(np.asarray(whole[0])))).max() < 1e-9


def test_extremes_stay_finite_and_keep_energy_and_spin(x64):
    x, v, dt = conics(99, 20000, narrow=-8.0)
    dt *= np.sign(np.sin(np.arange(20000.0)))
    parts = (np.split(q, 20000 // MANY) for q in (x, v, dt))
    new = [np.concatenate(q) for q in zip(*(drift(x, v, 1.0, dt) for x, v, dt in zip(*parts)))]
    assert np.isfinite(new[0]).all() and np.isfinite(new[1]).all()
    energy = lambda x, v: (v * v).sum(1) / 2 - 1 / np.linalg.norm(x, axis=1)
    spin = np.cross
    depth = lambda x: 1 / np.linalg.norm(x, axis=1)
    scale = depth(x) + depth(new[0])
    assert (np.abs(energy(*new) - energy(x, v)) / scale).max() < 1e-9
    assert (
        np.linalg.norm(spin(*new) - spin(x, v), axis=1) / np.linalg.norm(spin(x, v), axis=1)
    ).max() < 1e-6


def test_without_gravity_it_is_a_straight_line(x64):
    x, v, dt = conics(0, MANY)
    there, _ = drift(x, v, 0.0, dt)
    # The error is two roundings of numbers up to about 40.
    np.testing.assert_allclose(there, x + dt[:, None] * v, rtol=0, atol=2e-14)


@pytest.mark.slow
def test_derivatives_are_those_of_the_flow(x64):
    """Test an ellipse over several revolutions and a hyperbola, in all arguments and in time."""
    flow = lambda q: jnp.concatenate(kepler.drift(q[:3], q[3:6], q[6], q[7]))
    start = np.array([0.9, 0.2, -0.1, 0.1, 0.8, 0.3])
    q = np.stack([np.append(start, end) for end in ([1.3, 25.0], [1e-3, 2.0])])
    all_ways = jax.jit(jax.vmap(lambda q: (flow(q), jax.jacfwd(flow)(q), jax.jacrev(flow)(q))))
    _, forward, reverse = map(np.asarray, all_ways(q))
    h = 2e-6
    ends = [np.array([all_ways(q + side * h * way)[0] for way in np.eye(8)]) for side in (1, -1)]
    slopes = np.moveaxis((ends[0] - ends[1]) / (2 * h), 0, -1)
    for k in range(2):
        for got in (forward[k], reverse[k]):
            # Difference errors: h^2 times a third derivative of about 1e4, plus rounding 1e-16 / h.
            np.testing.assert_allclose(got, slopes[k], atol=2e-7 * np.abs(slopes[k]).max())
        # Liouville's theorem: the flow conserves the volume of phase space.
        assert abs(np.linalg.det(forward[k][:, :6]) - 1) < 1e-9


@pytest.mark.parametrize("short", [1.6e-2, 1e-4, 1e-6])
def test_a_guess_that_falls_on_the_pericentre_is_no_trap(x64, short):
    """Laguerre's step is 1 / (1 - e) from there, and once ended far away; 1 - e is `short`."""
    e, begin = (
        1 - short,
        np.linspace(-3.1, 3.1, MANY),
    )  # eccentric; the guess adds mean motion to it
    across, flat = np.sqrt(1 - e * e), np.zeros(MANY)
    x = np.stack([np.cos(begin) - e, across * np.sin(begin), flat])
    v = np.stack([-np.sin(begin), across * np.cos(begin), flat]) / (1 - e * np.cos(begin))[None]
    there, _ = drift(x.T, v.T, 1.0, -begin)
    mean = -e * np.sin(begin)
    low, high = mean - 1, mean + 1
    for _ in range(60):  # Kepler's equation by halving
        middle = (low + high) / 2
        early = middle - e * np.sin(middle) < mean
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    r = np.sqrt((np.asarray(there) ** 2).sum(1))
    np.testing.assert_allclose(r, 1 - e * np.cos(low), rtol=0, atol=4e-15 / short)


def test_three_rounds_reach_rounding_on_ellipses_that_are_not_narrow(x64, monkeypatch):
    """Start at the mean anomaly, near the eccentric one; e is up to 0.6, over half an orbit."""
    random = np.random.default_rng(8)
    e, gm = random.uniform(0, 0.6, 500), 10 ** random.uniform(-2, 2, 500)
    a, start = 10 ** random.uniform(-1, 1, 500), random.uniform(-np.pi, np.pi, 500)
    end = start + random.uniform(-0.9, 0.9, 500) * np.pi  # eccentric anomalies

    def state_at(E):
        minor, rate = np.sqrt(1 - e * e), np.sqrt(gm / a) / (1 - e * np.cos(E))
        x = a * np.array([np.cos(E) - e, minor * np.sin(E), 0 * E])
        return x.T, (rate * np.array([-np.sin(E), minor * np.cos(E), 0 * E])).T

    mean = lambda E: E - e * np.sin(E)
    monkeypatch.setattr(kepler, "_ROUNDS", 3)
    got = jax.jit(lambda *given: kepler.drift(*given))(
        *state_at(start), gm, (mean(end) - mean(start)) * np.sqrt(a**3 / gm)
    )
    for found, want, unit in zip(got, state_at(end), (a, np.sqrt(gm / a)), strict=True):
        np.testing.assert_allclose(found / unit[:, None], want / unit[:, None], atol=1e-13, rtol=0)


def test_the_pericentre_of_every_conic_is_where_and_when_it_is(x64):
    """Compare ellipse and hyperbola with drifts away from it, a parabola with Barker's equation.

    There D = tan(f / 2) is the radius times its rate over the spin: sqrt(2 q^3 / gm) (D + D^3 / 3).
    """
    e, q = (np.resize(q, MANY) for q in ([0.3, 0.9, 1.2, 5.0], [0.5, 2.0, 1.0, 0.7]))
    x, v, gm = *np.zeros((2, MANY, 3)), 1.7
    x[:, 0], v[:, 1] = q, np.sqrt(gm * (1 + e) / q)
    later = np.resize([0.4, -3.0, 2.0, -0.3], MANY)
    pericentre = jax.jit(kepler.pericenter)
    time, distance = pericentre(*drift(x, v, gm, later), gm)
    np.testing.assert_allclose(time, -later, rtol=1e-12)
    np.testing.assert_allclose(distance, q, rtol=1e-12)
    x, v = np.tile([2.0, 0, 0], (MANY, 1)), np.resize([[1.0, 1, 0], [-1, 1, 0]], (MANY, 3))
    time, distance = pericentre(x, v, 2.0)  # an energy of exactly 0; q = 1 and D = +-1
    np.testing.assert_allclose(time, np.resize([-4 / 3, 4 / 3], MANY), rtol=1e-15)
    np.testing.assert_allclose(distance, 1, rtol=1e-15)
