"""The Wisdom-Holman map: coordinates, order, mass scaling, REBOUND's WHFast, gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rebound

from jaxgpu.physics.nbody.orbits import elements
from jaxgpu.physics.nbody.planets import ephemeris
from jaxgpu.physics.nbody.planets.wisdom_holman import WisdomHolman
from jaxgpu.runs.loop import rollout

inertial = jax.jit(WisdomHolman.to_inertial)


to_state = jax.jit(elements.to_state)


def init(spec, x, v):
    return spec.init(x, v)


@jax.jit
def walk(spec, state, steps):
    return jax.lax.fori_loop(0, steps, lambda _, state: spec.step(state), state)


def planets(mass=1e-3):
    """Make a star, two planets and a massless body on inclined eccentric orbits, off-centre."""
    gm = np.array([1.0, mass, 0.3 * mass, 0.0])
    orbit = elements.Elements(
        *(np.array(q) for q in ([1, 1.9, 5.0], [0.05, 0.1, 0.3], [0.02, 0.3, 0.6])),
        *(np.array(q) for q in ([1.0, 2, 3], [2.0, 3, 4], [0.5, 4, 1])),
    )
    x, v = to_state(orbit, np.ones(3))
    pad = lambda q, b: np.concatenate([np.zeros((1, 3)), q]) + b
    return gm, pad(x, 0.25), pad(v, 0.125)


def energy(gm, x, v):
    gm, x, v = (np.asarray(q) for q in (gm, x, v))
    r = np.linalg.norm(x[:, None] - x[None], axis=2) + np.diag(np.full(gm.size, np.inf))
    return (gm * (v * v).sum(1)).sum() / 2 - (gm[:, None] * gm / r).sum() / 2


def test_coordinates_go_there_and_back_and_the_centre_moves_straight(x64):
    gm, x, v = planets()
    spec = WisdomHolman(gm, 0.1)
    state = init(spec, x, v)
    for got, want in zip(inertial(spec, state), (x, v)):
        np.testing.assert_allclose(got, want, atol=1e-15)
    end = inertial(spec, walk(spec, state, 100))
    centre = lambda q: np.asarray(gm @ q) / float(gm.sum())
    np.testing.assert_allclose(centre(end[0]), centre(x) + 10 * centre(v), atol=1e-13)
    spin = lambda x, v: np.asarray(gm) @ np.cross(np.asarray(x), np.asarray(v))
    np.testing.assert_allclose(spin(*end), spin(x, v), atol=1e-13)


def test_error_is_of_second_order_in_the_step_and_of_first_in_the_masses(x64):
    gm, x, v = planets()

    def ends(mass, steps):
        gm, x, v = planets(mass)
        spec = WisdomHolman(gm, 4.0 / steps)
        return np.asarray(inertial(spec, walk(spec, init(spec, x, v), steps))[0])

    errors = []
    for mass in (1e-3, 1e-4):
        best = ends(mass, 2560)
        errors.append([np.abs(ends(mass, n) - best).max() for n in (80, 160)])
    order = np.log2(errors[0][0] / errors[0][1])
    assert abs(order - 2) < 0.15, errors
    assert 7 < errors[0][0] / errors[1][0] < 14, errors


@pytest.mark.slow
def test_two_bodies_are_exact(x64):
    """The step is half a period, and the system ends 500 lengths away."""
    gm, x, v = planets()
    spec = WisdomHolman(np.array([1.0, 0.5]), 0.6 * np.pi / np.sqrt(1.5))
    state = init(spec, x[:2], v[:2])
    before = energy(spec.gm, *inertial(spec, state))
    assert abs(energy(spec.gm, *inertial(spec, walk(spec, state, 2560))) / before - 1) < 1e-12


def test_agrees_with_rebounds_whfast(x64):
    """The step is 1 / 1000 of the shortest period, where both errors are about 1e-6."""
    gm, x, v = planets()
    sim = rebound.Simulation()
    for m, p, q in zip(gm, np.asarray(x), np.asarray(v)):
        sim.add(m=float(m), x=p[0], y=p[1], z=p[2], vx=q[0], vy=q[1], vz=q[2])
    sim.N_active, sim.integrator, sim.dt = 3, "whfast", 1 / 160
    spec = WisdomHolman(gm, 1 / 160)
    ours = np.asarray(inertial(spec, walk(spec, init(spec, x, v), 2560))[0])
    sim.integrate(16.0, exact_finish_time=0)
    theirs = np.array([[p.x, p.y, p.z] for p in sim.particles])
    assert abs(sim.t - 16.0) < 1e-9
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


def test_energy_does_not_drift(x64):
    gm, x, v = planets()
    spec, errors = WisdomHolman(gm, 2 * np.pi / 40), []
    state = init(spec, x, v)
    first = energy(gm, x, v)
    for _ in range(20):
        state = walk(spec, state, 2560)
        errors.append(energy(gm, *inertial(spec, state)) / first - 1)
    assert np.abs(errors).max() < 1e-5
    assert abs(np.polyfit(np.arange(20), errors, 1)[0]) * 20 < 2 * np.abs(errors).max()


@pytest.mark.slow
def test_gradients_both_ways_match_central_differences(x64):
    gm, x, v = planets(0.01)

    def ends(q):
        spec = WisdomHolman(jnp.append(q[:3], 0.0), 0.15)
        state = spec.init(q[3:15].reshape(4, 3), q[15:].reshape(4, 3))
        return jnp.concatenate(spec.to_inertial(rollout(spec.step, state, 20)[0])).ravel()

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def all_ways(q):
        back = jax.grad(lambda q: jnp.sum(ends(q) ** 2))(q)
        return ends(q), jax.jacfwd(ends)(q), back

    q, h = np.concatenate([gm[:3], x.ravel(), v.ravel()]), 3e-6
    some = np.array([0, 1, 2, 4, 9, 14, 20, 26])
    sides = [[all_ways(q + side * h * way)[0] for way in np.eye(q.size)[some]] for side in (1, -1)]
    slope = np.subtract(*sides).T / (2 * h)
    end, forward, back = map(np.asarray, all_ways(q))
    np.testing.assert_allclose(forward[:, some], slope, atol=1e-7 * np.abs(slope).max())
    np.testing.assert_allclose(back, 2 * end @ forward, rtol=1e-8, atol=1e-8)


def test_wrong_shapes_are_refused():
    with pytest.raises(
        ValueError, match=r"WisdomHolman.init: gm \[2\], x \[4, 3\], v \[4, 3\]; must be"
    ):
        WisdomHolman(jnp.ones(2), 0.1).init(jnp.ones((4, 3)), jnp.ones((4, 3)))
    with pytest.raises(ValueError, match=r"x has shape \[3, 4\]; it must be \[..., 3\], one row"):
        WisdomHolman(jnp.ones(4), 0.1).init(jnp.ones((3, 4)), jnp.ones((3, 4)))


@pytest.mark.slow
def test_sun_mars_and_jupiter_are_rows(x64):
    """A shape of [3, 3] is one row per body; read the wrong way, Mars was in the Sun."""
    start = ephemeris.de440(ephemeris.J2000)
    some = [0, 4, 5]
    spec = WisdomHolman(start.gm[some], 10.0)
    x, v = start.x[some], start.v[some]
    end = inertial(spec, walk(spec, spec.init(x, v), 100))[0]
    sim = rebound.Simulation()
    for m, p, q in zip(start.gm[some], x, v):
        sim.add(m=m, x=p[0], y=p[1], z=p[2], vx=q[0], vy=q[1], vz=q[2])
    sim.integrate(1000.0)
    theirs = np.array([[p.x, p.y, p.z] for p in sim.particles])
    np.testing.assert_allclose(end, theirs, atol=1e-3)


WRONG = [
    (dict(gm=[1.0, -1e-3]), r"WisdomHolman.gm=-0.001 at \[1\]"),
    (dict(gm=[0.0, 1e-3]), "gm of the first body is 0"),
    (dict(dt=np.nan), "WisdomHolman.dt=nan"),
    (dict(dt=np.ones(2)), r"dt has shape \[2\]"),
    (dict(x=[[0.0, 0, 0], [0, 0, 0]]), "x: bodies 0 and 1 are at the same position"),
    (dict(x=np.full((2, 3), np.inf)), "x=inf at"),
    (dict(v=np.zeros((2, 3), np.float32)), "x is float64, v is float32, gm is float64; they must"),
]


@pytest.mark.parametrize("change, sentence", WRONG)
def test_wrong_values_are_refused_in_a_sentence(x64, change, sentence):
    right = dict(gm=[1.0, 1e-3], dt=0.1, x=[[0.0, 0, 0], [1, 0, 0]], v=[[0.0, 0, 0], [0, 1, 0]])
    given = right | change
    with pytest.raises((ValueError, TypeError), match=f"^WisdomHolman.init: {sentence}"):
        WisdomHolman(given["gm"], given["dt"]).init(given["x"], given["v"])
    state = WisdomHolman(right["gm"], 0.1).init(right["x"], right["v"])  # lists
    assert np.isfinite(state.x).all()
