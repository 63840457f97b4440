"""The log of encounters: flybys known in closed form, and a densely sampled cluster."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nbody_inputs import halves, masses, sphere
from scipy.integrate import solve_ivp

from jaxgpu.physics.nbody.orbits import kepler
from jaxgpu.physics.nbody.planets import encounters
from jaxgpu.physics.nbody.planets.encounters import Moment

stars_watched = jax.jit(encounters.log_stars)
tracers_watched = jax.jit(encounters.log_tracers)
drift = jax.jit(kepler.drift)


def flyby(q, e, gm, before, after):
    """Return relative states before and after the pericentre at distance q on the x axis."""
    x, v = np.array([q, 0, 0]), np.array([0, np.sqrt(gm * (1 + e) / q), 0])
    ends = [drift(x, v, gm, t) for t in (-before, after)]
    return [np.concatenate([np.asarray(p) for p in end]) for end in ends]


def moment(t, points):
    """Make bodies of positions over velocities [6, N]."""
    return Moment(t=t, x=points[:3].T, v=points[3:].T)


def test_finds_flybys_between_two_moments(x64):
    """Use four distant pairs: three flybys of known pericentres; the fourth only approaches."""
    m = np.array([0.5, 0.25, 0.1, 0.1, 1.0, 2.0, 0.3, 0.3])
    passes = [(0.01, 1.5, 0.3, 0.7), (0.002, 40.0, 0.5, 0.5), (0.05, 1.01, 0.9, 0.1)]
    passes.append((0.03, 2.0, 1.5, -0.5))
    start, end = np.zeros((6, 8)), np.zeros((6, 8))
    for k, (q, e, before, after) in enumerate(passes):
        gm = m[2 * k] + m[2 * k + 1]
        for to, state in zip((start, end), flyby(q, e, gm, before, after)):
            for i, part in ((2 * k, -m[2 * k + 1] / gm), (2 * k + 1, m[2 * k] / gm)):
                to[:, i] = part * state
                to[0, i] += 1e4 * k
    log = encounters.empty_log(8, jnp.zeros(()))
    stars = moment(10.0, start), moment(11.0, end)
    log = stars_watched(log, *stars, m, 0.1)
    got = encounters.table(log)
    assert got["body"].tolist() == [0, 2, 4] and got["star"].tolist() == [1, 3, 5]
    want = np.array([(10 + before, q) for q, _, before, _ in passes[:3]]).T
    # Positions near 1e4 have an error of 2e-12, compared with pericentres of 2e-3.
    np.testing.assert_allclose(got["time"], want[0], atol=1e-8)
    np.testing.assert_allclose(got["distance"], want[1], rtol=1e-7)
    speed = [
        np.sqrt((m[2 * k] + m[2 * k + 1]) * (1 + e) / q) for k, (q, e, *_) in enumerate(passes[:3])
    ]
    np.testing.assert_allclose(got["speed"], speed, rtol=1e-7)
    near = encounters.table(stars_watched(encounters.empty_log(8, jnp.zeros(())), *stars, m, 0.02))
    assert near["body"].tolist() == [0, 2]
    # Test the same pairs with the first of each as a massless body.
    light = np.where(np.arange(8) % 2, m, 0)[1::2]
    heavy = moment(10.0, start[:, 1::2]), moment(11.0, end[:, 1::2])
    tracers = moment(10.0, start[:, ::2]), moment(11.0, end[:, ::2])
    log = tracers_watched(log, *heavy, *tracers, light, 0.1)
    assert int(log.count) == 6 and np.asarray(log.star[3:6]).tolist() == [0, 1, 2]


@pytest.mark.parametrize("seed", range(5))
def test_misses_nothing_that_a_dense_look_at_massless_flights_sees(x64, seed):
    """Massless bodies fly through eight stars at rest; SciPy's events must all be found."""
    random = np.random.default_rng(seed)
    places, m = random.uniform(-1, 1, (3, 8)), masses(8, seed, 1.6e-3)

    def rate(t, y):
        d = places - y[:3, None]
        return np.concatenate([y[3:], (m * d / ((d * d).sum(0)) ** 1.5).sum(1)])

    events = [lambda t, y, p=p: (y[:3] - p) @ y[3:] for p in places.T]
    for event in events:
        event.direction = 1  # receding from now on
    x0 = np.concatenate([random.uniform(-1, 1, 3), random.normal(size=3) * 0.7])
    path = solve_ivp(
        rate, (0, 2), x0, "DOP853", rtol=1e-11, atol=1e-12, events=events, dense_output=True
    )
    want = sorted(
        (np.linalg.norm(y[:3] - places[:, k]), t, k)
        for k in range(8)
        for t, y in zip(path.t_events[k], path.y_events[k])
    )
    want = [one for one in want if one[0] < 0.4]
    log = encounters.empty_log(64, jnp.zeros(()))
    stars = np.concatenate([places, np.zeros((3, 8))])
    for t in np.arange(0, 2, 1 / 16):
        moments = t, t + 1 / 16
        tracers = [moment(t, path.sol(t)[:, None]) for t in moments]
        log = tracers_watched(log, *(moment(t, stars) for t in moments), *tracers, m, 0.4)
    got = encounters.table(log)
    assert sorted(got["star"].tolist()) == sorted(k for *_, k in want)
    for distance, t, k in want:
        near = np.argmin(np.abs(got["time"] - t) + 10 * (got["star"] != k))
        assert (
            abs(got["time"][near] - t) < 1e-3 and abs(got["distance"][near] / distance - 1) < 1e-2
        )


@pytest.mark.slow
def test_an_overflow_is_an_error(x64):
    x, v = halves(sphere(0, 64))
    before, after = Moment(0.0, x, v), Moment(0.5, x + 0.5 * v, v)
    log = encounters.empty_log(8, jnp.zeros(()))
    log = stars_watched(log, before, after, masses(64, 3, 64e-6), 1.0)
    with pytest.raises(
        RuntimeError, match=r"encounters.table: \d+ encounters, room for 8; give a cap"
    ):
        encounters.table(log)


def test_a_pair_turns_within_its_period_and_not_before(x64):
    """The pair is on an ellipse of period 2 pi; an unbound one never completes an orbit."""
    place = lambda e: [1 + e, 0, 0, 0, np.sqrt(abs(1 - e) / (1 + e)), 0]
    d = [jnp.asarray(q) for q in np.array([place(0.0), place(0.6), [1.0, 0, 0, 0, 2, 0]]).T]
    for span, turns in ((6.28, False), (6.29, True)):
        got = encounters._completes_orbit(d, jnp.ones(3), span)
        np.testing.assert_array_equal(got, [turns, turns, False])
