"""Hermite block steps: order, reversibility of nothing, passivity, and REBOUND."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rebound
from conformance import avals, check
from nbody_inputs import halves, masses, points
from shapes import check_shapes

from jaxgpu.physics.nbody.clusters import Hermite, Hermite6, Pairing, hermite, scheduler
from jaxgpu.physics.nbody.clusters.binary import ks_pairs
from jaxgpu.physics.nbody.clusters.blocks import Population
from jaxgpu.physics.nbody.clusters.tracers import Tracers
from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.physics.nbody.models import plummer
from jaxgpu.physics.nbody.orbits import ks
from jaxgpu.precision import reassociation

NOBODY = np.zeros((6, 0))


def pair(e, m=(0.75, 0.25)):
    """A binary of semi-major axis 1 and total mass 1 at its apocentre: period 2 pi."""
    x = np.zeros((6, 2))
    part = np.array([m[1], -m[0]])
    x[0], x[4] = (1 + e) * part, np.sqrt((1 - e) / (1 + e)) * part
    return x, np.array(m)


init = jax.jit(lambda spec, *bodies: spec.init(*bodies))  # one program a shape
step = jax.jit(Hermite.step)
fast = jax.jit(Hermite.step, compiler_options=reassociation())


def sphere(seed, count):
    """A Plummer sphere, positions over velocities [6, count]."""
    return points(plummer(jax.random.key(seed), count))


def energies(x, m, softening=0.0):
    return float(sum(diagnostics.energy(*halves(x), jnp.asarray(m), softening)))


def gone(spec, stars, m, tracers, count, step=step):
    state = init(spec, *halves(jnp.asarray(stars)), jnp.asarray(m), halves(jnp.asarray(tracers)))
    for _ in range(count):
        state = step(spec, state)
    return state


@pytest.mark.slow
def test_error_shrinks_as_the_fourth_power_of_the_step(x64):
    """With equal steps: longest = shortest."""
    stars, m = pair(0.3)
    error, steps = [], (7, 8, 9)
    for depth in steps:
        spec = Hermite(interval=2 * np.pi, longest=depth, shortest=depth)
        error.append(np.abs(gone(spec, stars, m, NOBODY, 1).stars.x - stars).max())
    order = np.log2(np.divide(error[:-1], error[1:]))
    np.testing.assert_allclose(order, 4, atol=0.15)


def test_an_eccentric_orbit_keeps_its_energy(x64):
    """Ten orbits at e = 0.9 with individual steps; the error falls with eta squared."""
    stars, m = pair(0.9)
    drift = []
    for eta in (0.02, 0.005):
        spec = Hermite(eta=eta, interval=2 * np.pi / 8)
        end = gone(spec, stars, m, NOBODY, 80).stars.x
        drift.append(abs(energies(end, m) / (-0.75 * 0.25 / 2) - 1))
    assert drift[0] < 1e-4 and 8 < drift[0] / drift[1] < 64, drift  # 4^2 an orbit, or better


@pytest.mark.slow
def test_energy_over_a_hundred_orbits(x64):
    """Steps forward are not reversible: the error grows by as much in every orbit.

    The figures are those first measured, of a circle in 256 steps and of e = 0.9 at eta 0.01.
    """
    equal = {"longest": 5, "shortest": 5}
    for e, rule, rate in ((0.0, equal, 7.77e-10), (0.9, {"eta": 0.01}, 1.72e-6)):
        stars, m = pair(e)
        spec = Hermite(interval=2 * np.pi / 8, **rule)
        middle = gone(spec, stars, m, NOBODY, 400)
        end = middle
        for _ in range(400):
            end = step(spec, end)
        energy = [energies(s.stars.x, m) for s in (middle, end)]
        error = np.array(energy) / (-0.75 * 0.25 / 2) - 1
        np.testing.assert_allclose(error, [50 * rate, 100 * rate], rtol=0.05)


@pytest.mark.slow
def test_equal_steps_keep_momentum_and_spin(x64):
    """All pulls are then of pairs at one moment, equal and opposite: momentum to rounding."""
    m = jnp.asarray(masses(64, 1))
    spec = Hermite(interval=0.25, softening=1e-3, longest=11, shortest=11)
    stars = sphere(0, 64)
    end = gone(spec, stars, m, NOBODY, 4).stars.x
    assert np.abs(np.asarray((end - stars) @ m)[3:]).max() < 1e-12
    spin = lambda x: np.cross(np.asarray(x[:3]).T, np.asarray(x[3:]).T).T @ np.asarray(m)
    assert np.abs(spin(end) - spin(stars)).max() < 1e-10


@pytest.mark.parametrize("seed", range(5))
def test_a_cluster_keeps_what_it_must(x64, seed):
    stars = sphere(seed, 128)
    m = jnp.asarray(masses(128, seed))
    spec = Hermite(interval=0.25, softening=1e-3)
    end = gone(spec, stars, m, NOBODY, 4, fast).stars.x
    assert abs(energies(end, m, 1e-3) / energies(stars, m, 1e-3) - 1) < 3e-6
    # block steps do not obey Newton's third law exactly, only as well as the steps are accurate:
    # to 1e-7 of equal stars, and of these to <m^2> / <m>^2 times that, which is 2.35
    assert np.abs(np.asarray((end - stars) @ m)[3:]).max() < 2.35e-7
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
    spec = Hermite(eta=1e-4, softening=0.02, interval=0.25)
    ours = gone(spec, stars, m, tracers, 4, fast)
    np.testing.assert_allclose(ours.stars.x[:3], theirs[:, :64], atol=1e-7)
    np.testing.assert_allclose(ours.tracers.x[:3], theirs[:, 64:], atol=1e-7)


@pytest.mark.slow
def test_massless_bodies_never_touch_the_stars(x64):
    stars, m = sphere(0, 64), masses(64, 10)
    spec = Hermite(interval=0.125)
    alone = gone(spec, stars, m, NOBODY, 1, fast)
    for count in (1, 100_000):
        tracers = sphere(9, count + 1)[:, 1:]
        joined = gone(spec, stars, m, tracers, 1, fast)
        jax.tree.map(np.testing.assert_array_equal, joined.stars, alone.stars)


@pytest.mark.slow
def test_a_massless_body_moves_as_a_very_light_star(x64):
    stars = sphere(5, 33)
    m = np.append(masses(32, 5), 1e-15)
    both = dict(eta=1e-3, softening=1e-2, interval=0.25)
    light = gone(Hermite(**both), stars, m, NOBODY, 4)
    none = gone(Hermite(**both), stars[:, :-1], m[:-1], stars[:, -1:], 4)
    np.testing.assert_allclose(none.tracers.x[:, 0], light.stars.x[:, -1], atol=1e-9)


@pytest.mark.slow
def test_steps_are_powers_of_two_and_all_meet_at_the_end(x64):
    stars = sphere(2, 100)
    state = gone(Hermite(), stars, masses(100, 2), stars[:, :10] * 1.1, 3)
    for group in (state.stars, state.tracers):
        assert (np.asarray(group.t) == 1).all()
        mantissa, _ = np.frexp(np.asarray(group.dt))
        assert (mantissa == 0.5).all()
    assert check_shapes(state.stars)["N"] == 100 and state.floored == 0


@pytest.mark.slow
@pytest.mark.parametrize("order", [Hermite, Hermite6])
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_the_forms_for_accelerators_make_the_steps_of_the_form_for_cpus(
    x64, monkeypatch, platform, order
):
    stars = sphere(6, 40)
    given = order(softening=0.01), stars, masses(40, 6), stars[:, :9] * 1.1, 2
    want = gone(*given, step=jax.jit(lambda spec, state: spec.step(state)))

    def chosen(*args, default, **forms):
        return forms.get(platform, default)(*args)

    monkeypatch.setattr(jax.lax, "platform_dependent", chosen)
    got = gone(*given, step=jax.jit(lambda spec, state: spec.step(state)))
    for a, b in ((got.stars, want.stars), (got.tracers, want.tracers)):
        np.testing.assert_allclose(a.x, b.x, atol=1e-12)
        np.testing.assert_array_equal(a.dt, b.dt)
    for name in ("blocks", "steps", "floored"):
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name))


@pytest.mark.slow
def test_the_sizes_of_tiles_are_invisible(x64):
    stars = sphere(6, 50)
    ends = [
        gone(Hermite(tile=k, softening=0.01), stars, masses(50, 6), stars[:, :9] * 1.1, 2)
        for k in (4, 32)
    ]
    np.testing.assert_allclose(ends[0].stars.x, ends[1].stars.x, atol=1e-12)
    assert ends[0].blocks == ends[1].blocks


@pytest.mark.slow
def test_tangents_match_central_differences(x64):
    stars, tracers = jnp.asarray(sphere(8, 8)), sphere(9, 4)

    def go(x):
        end = gone(Hermite(softening=0.1), x, masses(8, 8), tracers + x[:, :4], 2)
        return jnp.concatenate([end.stars.x, end.tracers.x], 1)

    tangent = jax.random.normal(jax.random.key(1), stars.shape)
    h = 1e-6
    slope = (go(stars + h * tangent) - go(stars - h * tangent)) / (2 * h)
    got = jax.jvp(go, (stars,), (tangent,))[1]
    np.testing.assert_allclose(got, slope, atol=1e-7 * np.abs(slope).max())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_conforms(x64, dtype):
    stars = jnp.asarray(sphere(0, 12), dtype)
    spec = Hermite(softening=0.1, shortest=12)
    m = jnp.asarray(masses(12, 0), dtype)
    state = spec.init(*halves(stars), m, halves(stars[:, :5] * 1.25))
    assert avals(jax.eval_shape(spec.step, state)) == avals(state)
    seen = lambda state: (lambda s: (s.stars.x, s.tracers.x))(spec.step(state))
    check(seen, state, rtol=1e-3 if dtype == jnp.float32 else 1e-9)


@pytest.mark.slow
def test_a_plunge_in_float32_comes_to_its_end_and_says_it_was_too_deep():
    """Times of 24 bits resolve no step below 2^-23: without that floor, time would stand still."""
    stars, m = (np.asarray(q, np.float32) for q in pair(0.99999))
    spec = Hermite(interval=2 * np.pi / 8)
    end = gone(spec, stars, m, NOBODY.astype(np.float32), 5)
    assert end.floored > 0 and end.stars.dt.min() >= 2.0**-23
    assert np.isfinite(end.stars.x).all()


def test_wrong_shapes_are_refused(x64):
    two, three, m = jnp.zeros((2, 3)), jnp.eye(3), jnp.ones(3)
    with pytest.raises(ValueError, match=r"Hermite.init: m has shape \[3\]; it must be \[2\]"):
        Hermite().init(two, two, m)
    with pytest.raises(ValueError, match=r"tracers.x has shape \[2, 6\]; it must be \[N, 3\]"):
        Hermite().init(three, three, m, (jnp.zeros((2, 6)), two))
    with pytest.raises(TypeError, match="tracers=.*; it must be positions and velocities"):
        Hermite().init(three, three, m, jnp.zeros((2, 6)))


def test_a_tracer_bound_to_a_star_is_followed_as_that_star(x64):
    """Bound where v^2 / 2 < m / r about its host: a circle has half that, an escape all of it."""
    stars, m, r = sphere(0, 3), np.array([0.3, 0.2, 0.5]), 1e-3
    tracers = np.arange(24.0).reshape(6, 4)
    relative = np.zeros((6, 4))  # to stars 0, 1, 1 and none
    relative[0], relative[4] = r, np.sqrt(2 / r * np.array([0.99 * 0.3, 0.99 * 0.2, 1.01 * 0.2, 0]))
    host = jnp.array([0, 1, 1, 3], jnp.int32)
    bodies = SimpleNamespace(x=jnp.asarray(tracers), s=jnp.asarray(relative), host=host)
    got = Hermite().followed(SimpleNamespace(tracers=bodies, m=jnp.asarray(m)), stars)
    np.testing.assert_array_equal(got[:, :2], stars[:, :2])
    np.testing.assert_array_equal(got[:, 2:], tracers[:, 2:])


def by_hand(spec, stars, m, t, dt, tracers=None):
    """A state at time `t` of the interval, all steps `dt`, whose forces nobody has asked for."""
    each = lambda value, group: jnp.full(group.shape[1], value)
    none = lambda group: jnp.zeros((6, group.shape[1]))
    tracers = stars[:, :0] if tracers is None else tracers
    times = lambda group: {"t": each(t, group), "dt": each(dt, group)}
    count = jnp.zeros((), jnp.int32)
    host = jnp.full(tracers.shape[1], m.size, jnp.int32)
    return hermite.State(
        stars=Population(x=stars, a=none(stars), **times(stars)),
        tracers=Tracers(
            x=tracers, a=none(tracers), s=none(tracers), past=none(tracers),
            gap=each(0.0, tracers), host=host, **times(tracers),
        ),
        origin=(), blocks=count, steps=jnp.zeros(2), floored=count,
        pairs=ks_pairs.empty(spec.pairing, m), refused=count,
    )  # fmt: skip


RUN_ONCE = {"xla_backend_optimization_level": 0}


def test_stars_of_a_pair_are_where_they_are_and_not_at_its_centre(x64):
    """Their own places and velocities; star 1 and a slot that is free stay what they are."""
    m, stars = np.array([0.5, 0.3, 0.2]), sphere(0, 3)
    apart = np.array([1e-3, 2e-3, 0, 3.0, 5.0, -7.0])
    stars[:, 2] = stars[:, 0] + apart
    centre = np.array(stars)
    centre[:, 0] = (0.5 * stars[:, 0] + 0.2 * stars[:, 2]) / 0.7
    spec = Hermite(pairing=Pairing(close=1e-2, slots=2))

    @partial(jax.jit, compiler_options=RUN_ONCE)
    def points(centre, m):
        state, one = by_hand(spec, centre, m, 1.0, 0.25), jnp.float64(1.0)
        masses = m[jnp.array([0, 2])]
        pair = replace(
            state.pairs.one(jnp.int32(0)), first=jnp.int32(0), second=jnp.int32(2), m=masses,
            share=masses / 0.7, orbit=ks.regularised(apart[:3], apart[3:], masses.sum()),
            t=one, ready=one,
        )  # fmt: skip
        pairs = replace(state.pairs, columns=state.pairs.holding(jnp.int32(0), pair))
        return spec.points(replace(state, pairs=pairs))

    got = points(jnp.asarray(centre), jnp.asarray(m))
    np.testing.assert_allclose(got, stars, rtol=1e-12, atol=1e-12)


def test_steps_below_the_floor_are_counted_of_stars_and_of_tracers(x64):
    """A block of four of either, which want steps of 1e-5 and may take a quarter at the least."""
    stars, m = sphere(0, 4), jnp.asarray(masses(4, 0))
    spec = Hermite(eta=1e-9, softening=0.1, longest=1, shortest=2)

    @partial(jax.jit, compiler_options=RUN_ONCE)
    def block(stars, tracers):
        state = by_hand(spec, stars, m, 0.0, 0.25, tracers)
        packing = scheduler.Packing(state.tracers)
        schedule = scheduler.open_schedule(packing, state.tracers, (spec.tile, spec.bulk))
        return spec.block(state, packing, schedule, (), jnp.float64(0.25))[0]

    end = block(jnp.asarray(stars), jnp.asarray(1.5 * stars))
    assert end.blocks == 1 and end.floored == 8
    np.testing.assert_array_equal(end.steps, [4, 4])
