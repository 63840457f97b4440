"""Massless bodies close to a star, without softening: against IAS15, bound and unbound."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rebound
from conformance import avals
from nbody_inputs import halves

from jaxgpu.devices.precision import reassociation
from jaxgpu.physics.nbody.clusters import Hermite, Pairing, close_encounters
from jaxgpu.physics.nbody.clusters.close_encounters import HostStars
from jaxgpu.physics.nbody.clusters.tracers import Tracers
from jaxgpu.physics.nbody.orbits import kepler

M = np.array([0.02, 0.02, 0.03, 0.01])
X = np.array(
    [
        [0, 0, 0, 0.03, -0.02, 0.05],
        [0.8, 0.1, 0, 0, 0.2, 0.05],
        [-0.3, 0.7, 0.2, -0.15, -0.1, 0],
        [0.1, -0.5, -0.6, 0.1, 0, 0.1],
    ]
).T
# Pericentre, eccentricity and time to it: three tracers pass the first star, three stay with it.
PASSING = [(1e-3, 2.0, 0.1), (1e-5, 1.5, 0.1), (1e-8, 1.01, 0.1)]
STAYING = [(1e-3, 0.5, 0.01), (1e-4, 0.99, 0.05), (5e-3, 0.3, 0.1)]
SPAN = 0.25
drift = jax.jit(kepler.drift)


def orbit(q, e, ahead, seed):
    """Return a state [6] on a conic about the first star, with a random tilt."""
    x, v = np.array([q, 0, 0]), np.array([0, np.sqrt(M[0] * (1 + e) / q), 0])
    x, v = drift(x, v, M[0], -ahead)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return np.concatenate([turn @ np.asarray(x), turn @ np.asarray(v)]) + X[:, 0]


def tracers_close():
    return np.stack([orbit(*one, 5 + k) for k, one in enumerate(PASSING + STAYING)], 1)


init = jax.jit(Hermite.init, compiler_options={"xla_backend_optimization_level": 0})
step = jax.jit(Hermite.step, compiler_options=reassociation())


def evolve(close, tracers, stars=X, eta=0.02, intervals=2, slots=1, change=lambda state: state):
    spec = Hermite(eta=eta, pairing=Pairing(close=close, slots=slots))
    state = init(spec, *halves(jnp.asarray(stars)), jnp.asarray(M), halves(jnp.asarray(tracers)))
    state = change(state)
    for _ in range(intervals):
        state = step(spec, state)
    return state


def run_ias15(tracers):
    sim = rebound.Simulation()
    for m, group in ((M, X), (np.zeros(6), tracers)):
        for mass, b in zip(m, group.T):
            sim.add(m=mass, x=b[0], y=b[1], z=b[2], vx=b[3], vy=b[4], vz=b[5])
    sim.N_active, sim.integrator = 4, "ias15"
    sim.integrate(SPAN)
    return np.array([[p.x, p.y, p.z] for p in sim.particles]).T


def miss(state, exact):
    """Return the deviation of each from IAS15's position, relative to the first star, [6]."""
    ours = np.asarray(state.tracers.x[:3] - state.stars.x[:3, :1])
    return np.linalg.norm(ours - (exact[:, 4:] - exact[:, :1]), axis=0)


def test_a_tracer_that_leaves_its_host_keeps_its_place_and_forgets_the_orbit(x64, monkeypatch):
    """Test an isolated star, at distances 0.05 and 0.25; the latter exceeds twice `close`, 0.1."""
    r, m = np.array([0.05, 0.25]), 0.5
    star = jnp.asarray([[1.0], [2], [3], [0.1], [0.2], [0.3]])
    spec = Hermite(pairing=Pairing(close=0.1, slots=1))
    start = np.zeros((6, 2))
    start[0], start[4] = r, np.sqrt(m / r)

    def force(x):  # of the star, none at it
        d = star - x
        r2 = jnp.sum(d[:3] ** 2, 0)
        apart = r2 > 0
        pull = close_encounters._attraction(jnp.where(apart, d, 1), jnp.full(4, m))
        return jnp.where(apart, pull, 0)

    zero, quarter = jnp.zeros((6, 2)), jnp.full(2, 0.25)
    first = jnp.zeros(2, jnp.int32)
    old = Tracers(
        x=zero, a=zero, s=jnp.asarray(start), past=zero,
        gap=0 * quarter, t=quarter, dt=quarter, host=first,
    )  # fmt: skip
    hosts = HostStars(star, star, jnp.array([m]), jnp.array([True]), jnp.asarray(0.5))
    # No tracer drifts here, because the drift takes time to compile.
    monkeypatch.setattr(close_encounters, "_kick_and_drift", lambda old, hosted, gm, h: old.s)
    step = jax.jit(lambda old: close_encounters._kepler_step(spec, old, first, force, hosts))
    new = step(old)
    np.testing.assert_allclose(new.x - star, start, atol=1e-12)
    np.testing.assert_allclose(new.s[:, 0], start[:, 0], atol=1e-12)
    assert not new.s[:, 1].any() and not new.past[:, 1].any()
    np.testing.assert_array_equal(new.host, [0, 1])
    np.testing.assert_array_equal(new.t, 0.5)


@pytest.mark.slow
def test_passages_and_orbits_are_those_of_ias15(x64):
    """Deep passages reach 1e-8 of the distance between the stars."""
    tracers = tracers_close()
    exact = run_ias15(tracers)
    coarse, fine = (evolve(0.02, tracers, eta=eta) for eta in (0.02, 0.002))
    assert coarse.tracers.host.tolist() == [4, 4, 4, 0, 0, 0] and coarse.floored == 0
    # A passage at q multiplies IAS15's rounding, 1e-16, by the initial distance over q.
    assert (miss(fine, exact) < [1e-9, 3e-8, 1e-8, 1e-9, 1e-9, 1e-9]).all(), miss(fine, exact)
    assert (miss(coarse, exact) < 3e-7).all(), miss(coarse, exact)
    # The widest orbit is perturbed most; a fourth-order error falls by 100.
    assert miss(coarse, exact)[5] > 30 * miss(fine, exact)[5]


@pytest.mark.slow
def test_without_hosts_the_same_costs_more_and_errs_more(x64):
    tracers = tracers_close()
    exact = run_ias15(tracers)
    with_, without = evolve(0.02, tracers), evolve(0.0, tracers, slots=0)
    assert with_.steps[1] < 0.7 * without.steps[1]
    assert (miss(with_, exact) < 0.3 * miss(without, exact)).all()


def test_an_undisturbed_orbit_is_exact(x64):
    """Run ninety periods at e = 0.5, with the other stars far away."""
    far = X.copy()
    far[:3, 1:] += 1e9 * np.eye(3)
    turn = 2 * np.pi * 0.002**1.5 / np.sqrt(M[0])
    tracers = np.repeat(orbit(0.001, 0.5, 0.0, 1)[:, None], 6, 1)
    end = evolve(0.02, tracers, far, intervals=3)
    apart = np.asarray(end.tracers.x - end.stars.x[:, :1])[:, 0]
    x, v = (part - home for part, home in zip(np.split(tracers[:, 0], 2), np.split(X[:, 0], 2)))
    want = drift(x, v, M[0], 0.375)
    assert 0.375 / turn > 90
    # Ninety orbits amplify the rounding of the initial state, 1e-16 of a unit, in the phase.
    np.testing.assert_allclose(apart[:3], want[0], atol=1e-10)


def test_stars_are_the_same_to_the_bit(x64):
    """The massless bodies may be close to one of the stars or far from all."""
    near, far = evolve(0.02, tracers_close()), evolve(0.02, tracers_close() + 3.0)
    assert (near.tracers.host < 4).any() and (far.tracers.host == 4).all()
    jax.tree.map(np.testing.assert_array_equal, near.stars, far.stars)
    spec = Hermite(eta=0.02, pairing=Pairing(close=0.02, slots=1))
    bodies = halves(X), M, halves(tracers_close())
    begun = jax.eval_shape(lambda x, m, more: spec.init(*x, m, more), *bodies)
    assert avals(near) == avals(begun)


def test_a_host_that_becomes_a_member_of_a_pair_is_left(x64):
    """The body continues about that star like one that never had a host."""
    both = X.copy()
    # The pair has semi-major axis 0.01 and e = 0.2, and is at its apocentre.
    both[:, 1] = X[:, 0] + [0.012, 0, 0, 0, np.sqrt(0.04 / 0.01 * 0.8 / 1.2), 0]
    tracers = np.repeat(orbit(5e-4, 0.2, 0.0, 2)[:, None], 6, 1)
    set_hosts = lambda state: replace(
        state,
        tracers=replace(
            state.tracers,
            host=jnp.zeros(6, jnp.int32),
            s=jnp.asarray(tracers - X[:, :1]),
            dt=state.tracers.dt / 4,
        ),
    )
    never, once = (
        evolve(0.02, tracers, both, 0.002, 1, change=c) for c in (lambda s: s, set_hosts)
    )
    assert (never.pairs.first < 4).all() and (once.tracers.host == 4).all()
    assert never.steps[1] > 500  # dozens of orbits
    np.testing.assert_allclose(once.tracers.x[:3], never.tracers.x[:3], atol=1e-6)
