"""The one call: what it keeps, alone and in a galaxy, what it refuses, how it resumes."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile
from nbody_inputs import halves, points

from jaxgpu import mesh
from jaxgpu.physics.nbody import Cluster, Hermite, Hermite6, Pairing, evolve, plummer, virial
from jaxgpu.physics.nbody.clusters import cluster, spread
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.physics.nbody.measure import diagnostics
from jaxgpu.pytree import pytree
from jaxgpu.run import rollout


def sphere(count, seed=0):
    with jax.enable_x64(True):
        return points(plummer(jax.random.key(seed), count))


M = np.random.default_rng(32).uniform(0.2, 1.8, 32)
M /= M.sum()
N = np.random.default_rng(6).uniform(0.2, 1.8, 32)
N /= N.sum()
SOFT = Hermite(softening=0.01)
SIXTH = Hermite6(eta=0.2, softening=0.01)
with jax.enable_x64(True):
    STARS = points(virial(*halves(sphere(32)), N))


def total(done):
    return done.history["kinetic"] + done.history["potential"]


@pytest.mark.slow
def test_keeps_the_energy_whatever_the_global_precision():
    runs = []
    for wide in (False, True):
        with jax.enable_x64(wide):
            runs.append(evolve(*halves(sphere(32)), M, 0.5, spec=SOFT))
    energy = total(runs[0])
    assert energy.shape == (5,)
    with jax.enable_x64(True):  # the first is that of the start
        start = np.sum(jax.jit(diagnostics.energy)(*halves(sphere(32)), M, 0.01))
    np.testing.assert_allclose(energy[0], start, rtol=1e-13)
    assert energy.dtype == np.float64 and np.abs(energy / energy[0] - 1).max() < 1e-6
    np.testing.assert_array_equal(runs[0].x, runs[1].x)


@pytest.mark.slow
def test_keeps_the_energy_to_ten_digits():
    tracers = halves(sphere(20, 3))
    done = evolve(*halves(STARS), N, 0.5, tracers=tracers, spec=replace(SIXTH, eta=0.1))
    assert total(done).shape == (5,) and total(done).dtype == np.float64
    assert np.abs(total(done) / total(done)[0] - 1).max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("spec", [SOFT, SIXTH])
def test_another_cluster_of_the_same_shape_compiles_nothing(spec):
    """Other places, masses and numbers of the spec are operands of the program that is there."""
    first, other = (halves(sphere(12, seed)) for seed in (1, 2))
    evolve(*first, np.full(12, 1 / 12), 0.125, spec=spec)
    with no_compile():
        done = evolve(*other, M[:12], 0.25, spec=replace(spec, eta=spec.eta / 2))
    assert total(done).shape == (3,)


@pytest.mark.slow
def test_runs_end_where_they_are_told_and_record_what_is_asked():
    measure = lambda state: {"x": state.x, "centre": state.m @ state.x}
    done = evolve(
        *halves(sphere(12, 1)),
        M[:12],
        1.0,
        spec=SOFT,
        measure=measure,
        until=lambda s: s.time > 0.2,
    )
    assert float(done.state.time) == 0.25 and done.history["x"].shape == (3, 12, 3)
    np.testing.assert_allclose(done.history["x"][0], sphere(12, 1)[:3].T, rtol=1e-15)
    np.testing.assert_array_equal(done.history["x"][-1], done.x)
    assert "Evolution" in repr(done)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [SOFT, SIXTH])
def test_the_pure_twin_is_mapped_and_differentiated(x64, spec):
    """Two clusters in one program, and the slope of an energy by the mass of all."""
    spec = Cluster(spec)
    both = [halves(sphere(6, seed)) for seed in (1, 2)]
    x, v = (jnp.stack([jnp.asarray(one[k]) for one in both]) for k in (0, 1))

    def kinetic(mass, x, v):
        start = spec.init(x, v, mass * jnp.full(6, 1 / 6))
        return rollout(spec.step, start, 1, measure=spec.measure)[1]["kinetic"]

    rows, slope = jax.jit(
        lambda: jax.jvp(lambda s: jax.vmap(lambda x, v: kinetic(s, x, v))(x, v), (1.0,), (1.0,))
    )()
    assert rows.shape == (2, 2) and np.isfinite(slope).all() and (slope[:, 1] != 0).all()
    one = evolve(x[0], v[0], np.full(6, 1 / 6), 0.125, spec=spec.steps)
    np.testing.assert_allclose(rows[0], one.history["kinetic"], rtol=1e-12)


def with_a_binary(count):
    """A sphere in which two stars are a hard binary of semi-major axis 1e-3, at e = 0.5."""
    x, m = sphere(count), M[0] + M[1]
    apart = np.array([1.5e-3, 0, 0, 0, np.sqrt(m / 3e-3), 0])
    x[:, 1], x[:, 0] = x[:, 0] + apart * M[0] / m, x[:, 0] - apart * M[1] / m
    return x


@pytest.mark.slow
@pytest.mark.parametrize("softening", [0.01, 0.0])
def test_resumes_to_the_same_bits(tmp_path, softening):
    """Without softening with a pair, whose 1000 orbits cost no more than its centre, nor energy."""
    stars = sphere(32) if softening else with_a_binary(32)
    tracers = sphere(20, 3)
    tracers[:, 7] = [30, 0, 0, 5, 0, 0]  # beyond 20 virial radii, and off
    how = {"spec": Hermite(softening=softening), "tracers": halves(tracers)}
    x, v = halves(stars)
    whole = evolve(x, v, M, 0.5, **how)
    evolve(x, v, M, 0.25, out=tmp_path, **how)
    again = evolve(x, v, M, 0.5, out=tmp_path, resume=True, **how)
    jax.tree.map(np.testing.assert_array_equal, whole.state, again.state)
    np.testing.assert_array_equal(whole.history["kinetic"], again.history["kinetic"])
    assert (whole.history["pairs"] > 0).all() == (softening == 0)
    energy, bodies = total(whole), whole.state.bodies
    assert np.abs(energy / energy[0] - 1).max() < 1e-6 and bodies.blocks < 2000
    assert whole.x.shape == (32, 3) and whole.history["gone"].tolist() == [0] + [1] * 4
    gone, steps = jax.tree.map(np.asarray, (whole.state.gone, bodies.tracers.dt))
    assert np.flatnonzero(gone.gone).tolist() == [7] and gone.time[7] == 0.125
    # about the centre of mass; a unit mass at 30 slows it by 1.4e-4 in an interval
    speed = np.linalg.norm(np.array([5.0, 0, 0]) - stars[3:] @ M)
    np.testing.assert_allclose(gone.speed[7], speed, atol=2e-4)
    np.testing.assert_allclose(gone.energy[7], speed**2 / 2 - 1 / 30.6, atol=2e-3)
    np.testing.assert_allclose(whole.tracer_x[7], [30.625, 0, 0], atol=1e-3)  # where it was seen
    assert np.isinf(steps[7])  # and never due again


@pytest.mark.slow
def test_sixth_order_resumes_to_the_same_bits(tmp_path):
    x, v = halves(STARS)
    whole = evolve(x, v, N, 0.5, spec=SIXTH)
    evolve(x, v, N, 0.25, spec=SIXTH, out=tmp_path)
    again = evolve(x, v, N, 0.5, spec=SIXTH, out=tmp_path, resume=True)
    jax.tree.map(np.testing.assert_array_equal, whole.state, again.state)


@pytest.mark.slow
def test_stars_in_a_galaxy_keep_their_energy():
    """That of all their motion in the galaxy, of which the origin's is no part."""
    mass, far = 1e6, 100.0
    turn = np.sqrt(mass / far**3)
    origin = tide.Origin(jnp.array([far, 0, 0]), jnp.array([0, turn * far, 0]))
    field = tide.Tide(potentials.PointMass(mass), origin)
    spec = replace(SIXTH, tide=field, interval=1 / 64)
    done = evolve(*halves(STARS), N, 0.5, spec=spec)

    def energy(x, origin):
        m = N
        place = np.concatenate([origin.x, origin.v])[:, None] + x
        own = np.linalg.norm(x[:3, :, None] - x[:3, None], axis=0)
        own = np.sqrt(own**2 + 0.01**2) + np.diag(np.full(32, np.inf))
        inner = -(m[:, None] * m / own).sum() / 2
        outer = -(m * mass / np.linalg.norm(place[:3], axis=0)).sum()
        return (m * (place[3:] ** 2).sum(0)).sum() / 2 + inner + outer

    after = energy(points((done.x, done.v)), done.state.bodies.origin)
    # of the cluster's own energy, a quarter; the galaxy's is 4e4 times that, and is rounded
    assert abs(after - energy(STARS, origin)) < 1e-8


def broken(spec, change):
    """A spec like another one whose steps do nothing but a change to the state."""

    @pytree
    class Broken(type(spec)):
        def step(self, state):
            return change(state)

    return Broken(eta=spec.eta, softening=spec.softening)


@pytest.mark.slow
@pytest.mark.parametrize(
    "count, sentence",
    [
        ("floored", "evolve: 3 steps should have been shorter than the floor, .*softening"),
        (
            "refused",
            "evolve: 3 times a close pair found none of 0 slots free; make Pairing.slots larger",
        ),
    ],
)
def test_what_went_wrong_on_the_way_is_not_silent(count, sentence):
    wrong = broken(SOFT, lambda state: replace(state, **{count: jnp.int32(3)}))
    with pytest.raises(RuntimeError, match=sentence):
        evolve(*halves(sphere(32)), M, 0.125, spec=wrong)


def test_a_step_below_the_floor_is_not_silent():
    wrong = broken(SIXTH, lambda state: replace(state, floored=jnp.int32(3)))
    sentence = r"evolve: 3 steps .* shorter than the floor, interval / 2\^40; .* or use Hermite,"
    with pytest.raises(RuntimeError, match=sentence):
        evolve(*halves(STARS), N, 0.125, spec=wrong)


def scaled(factor, speeds=1.0):
    """A change of the stars' places and speeds."""
    by = np.array([factor] * 3 + [factor * speeds] * 3)[:, None]
    return lambda state: replace(state, stars=replace(state.stars, x=state.stars.x * by))


@pytest.mark.slow
def test_lost_places_are_not_silent():
    wrong = broken(SOFT, scaled(np.nan))
    with pytest.raises(RuntimeError, match="evolve: the stars' places are not finite any more, .*"):
        evolve(*halves(sphere(32)), M, 0.125, spec=wrong)


def changed(index, value):
    x = sphere(32)
    x[index] = value
    return x


ORIGIN = tide.Origin(jnp.array([9.0, 0, 0]), jnp.zeros(3))
TIDE = tide.Tide(potentials.PointMass(1.0), ORIGIN)


@pytest.mark.parametrize(
    "stars, m, more, sentence",
    [
        (sphere(32)[:, :1], M[:1], {}, "evolve: x: 1 stars; must be .*, N at least 2"),
        (sphere(32), M[:5], {}, r"evolve: m has shape \[5\]; it must be \[32\]"),
        (sphere(32), -M, {}, "m: star .* has -0.0.*; must be positive"),
        (sphere(32), 0 * M, {}, "m: star 0 has 0.0; must be positive; or make it a tracer"),
        (
            changed((2, 7), np.nan),
            M,
            {},
            r"evolve: x=nan at \[7, 2\]; it must be a finite number",
        ),
        (np.repeat(sphere(16), 2, axis=1), M, {}, "x: star . is where another is"),
        (
            sphere(32),
            M,
            {"tracers": np.zeros((2, 6, 4))},
            r"evolve: tracers=ndarray; it must be positions and velocities",
        ),
        (
            sphere(32),
            M,
            {"tracers": (np.zeros((3, 4)), np.zeros((3, 4)))},
            r"evolve: tracers.x has shape \[3, 4\]; it must be",
        ),
        (
            sphere(32),
            M,
            {"tracers": halves(np.full((6, 4), np.inf))},
            r"evolve: tracers.x=inf at \[0, 0\]; it must be a finite number",
        ),
        (sphere(32), M, {"tracers": halves(sphere(32)[:, 9:11])}, "tracers: body 0 is where a st"),
        (
            sphere(32),
            M,
            {"spec": Hermite(eta=0.0)},
            "evolve: Hermite.eta=0; it must be a finite number above 0",
        ),
        (
            sphere(32),
            M,
            {"spec": Hermite(softening=np.nan)},
            "evolve: Hermite.softening=nan; it must be a finite number of at least 0",
        ),
        (
            sphere(32),
            M,
            {"spec": replace(SIXTH, interval=0.0)},
            "evolve: Hermite6.interval=0; it must be a finite number above 0",
        ),
        (
            sphere(32),
            M,
            {"spec": Cluster(SOFT, edge=0.0)},
            "evolve: Cluster.edge=0; it must be a number or infinity above 0",
        ),
        (sphere(32), M, {"spec": "fast"}, "evolve: spec='fast'; it must be a Hermite, a Hermite6"),
        (
            sphere(32),
            M,
            {"spec": Hermite(pairing=Pairing(slots=-1))},
            "evolve: Pairing.slots=-1; it must be a whole number of at least 0",
        ),
        (
            sphere(32),
            M,
            {"tolerance": 0.0},
            "evolve: tolerance=0; it must be a number or inf.* above 0",
        ),
        (sphere(32), M, {"t": 0.3}, "evolve: t=0.3; it must be a multiple of the interval, 0.125"),
        (sphere(32), M, {"t": -1.0}, "evolve: t=-1; it must be a finite number of at least 0"),
        (
            sphere(32),
            M,
            {"spec": replace(SIXTH, tide=TIDE), "tolerance": 0.1},
            "evolve: tolerance=0.1; a galaxy works on the cluster",
        ),
    ],
)
def test_bad_input_gets_a_sentence(stars, m, more, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        evolve(*halves(stars), m, **{"t": 0.125, **more})


@pytest.mark.parametrize("unbound", [1, "no", None, np.float64(1), jnp.ones(()), jnp.arange(2)])
def test_whether_a_cluster_is_alone_is_a_bool(unbound):
    with pytest.raises(TypeError, match=r"^Cluster.unbound=.*; it must be a bool; True where it"):
        Cluster(SOFT, unbound=unbound).init(*cold_eight())


def test_rows_and_columns_are_not_mixed_up():
    with pytest.raises(ValueError, match=r"evolve: x has shape \[3, 32\]; it must be \[N, 3\]"):
        evolve(sphere(32)[:3], sphere(32)[3:], M, 0.125)


def cold_eight():
    rng = np.random.default_rng(8)
    return rng.normal(size=(3, 8)).T, np.zeros((8, 3)), rng.uniform(0.5, 1.5, 8) / 8


@pytest.mark.parametrize("spec", [SOFT, SIXTH])
def test_a_run_whose_energy_is_lost_says_so_where_it_was(spec):
    """Heated by a thousandth in each interval."""
    wrong = broken(spec, scaled(1.0, 1.001))
    sentence = r"evolve: the energy is off by 0.00\d+ of M\^2 / 4 R_v at t = 0.125, more than toler"
    with pytest.raises(RuntimeError, match=sentence):
        evolve(*halves(sphere(32)), M, 1.0, spec=wrong)
    done = evolve(*halves(sphere(32)), M, 1.0, spec=wrong, tolerance=np.inf)
    assert done.history["kinetic"].shape == (9,) and float(done.state.time) == 1


@pytest.mark.slow
def test_eight_cold_stars_are_held_to_their_tolerance():
    """Their collapse is beyond steps of this length; it says so, and when."""
    x, v, m = cold_eight()
    with pytest.raises(RuntimeError, match="evolve: the energy is off by .* at t = [123].*eta sm"):
        evolve(x, v, m, 4.0, tolerance=1e-6)
    done = evolve(x, v, m, 4.0, spec=Hermite(eta=0.002), tolerance=1e-6)
    assert len(total(done)) == 33 and abs(total(done) / total(done)[0] - 1).max() < 1e-6


def steps_taken(state):
    return {"taken": state.bodies.steps}


@pytest.mark.slow
@pytest.mark.parametrize("softening", [0.01, 0.0])
def test_tracers_over_eight_devices_go_the_way_of_one(tmp_path, softening):
    """Stars have the bits of one device on all of them, and nothing crosses in a step.

    Tracers are rounded otherwise, for the compiler makes another program of it.
    """
    x, v = halves(sphere(32) if softening else with_a_binary(32))
    tracers = sphere(64, 3)
    tracers[:, 7] = [30, 0, 0, 5, 0, 0]  # it escapes
    how = {"spec": Hermite(softening=softening), "tracers": halves(tracers)}
    how["measure"] = steps_taken
    one = evolve(x, v, M, 0.5, **how)
    eight = jax.make_mesh((8,), ("tracers",))
    many = evolve(x, v, M, 0.5, mesh=eight, **how)
    alike = np.testing.assert_array_equal
    jax.tree.map(alike, many.state.bodies.stars, one.state.bodies.stars)
    jax.tree.map(alike, many.history, one.history)
    jax.tree.map(alike, many.state.gone.gone, one.state.gone.gone)
    np.testing.assert_allclose(many.tracer_x, one.tracer_x, atol=1e-9)
    jax.tree.map(lambda a, b: alike(np.shape(a), np.shape(b)), many.state, one.state)
    for stars in jax.tree.leaves((many.state.bodies.stars, many.state.points)):
        copies = [np.asarray(copy.data) for copy in stars.addressable_shards]
        assert len(copies) == 8 and all((copy == copies[0]).all() for copy in copies)
    evolve(x, v, M, 0.25, out=tmp_path, mesh=eight, **how)
    rest = evolve(x, v, M, 0.5, out=tmp_path, resume=True, mesh=eight, **how)
    jax.tree.map(alike, rest.state, many.state)
    assert rest.timing.compile == 0


@pytest.mark.slow
def test_a_step_over_eight_devices_asks_none_of_another(x64):
    eight, spec = mesh.devices(8), Cluster(SIXTH, edge=np.float64(20.0))
    x, v = halves(STARS)
    state, step = spread.begun(spec, spec.init(x, v, N, halves(sphere(16, 3))), eight)
    text = jax.jit(step).lower(state).compile().as_text()
    assert not any(word in text for word in ("all-reduce", "all-gather", "collective-permute"))


def test_meshes_that_do_not_fit_are_refused_in_a_sentence():
    eight, (x, v) = mesh.devices(8), halves(STARS)
    with pytest.raises(ValueError, match="^evolve: mesh of 8 devices, and no tracers; bodies with"):
        evolve(x, v, N, 0.5, spec=SIXTH, mesh=eight)
    with pytest.raises(ValueError, match="^evolve: mesh of 8 devices for 20 independent bodies"):
        evolve(x, v, N, 0.5, spec=SIXTH, mesh=eight, tracers=halves(sphere(20, 3)))
    with pytest.raises(TypeError, match="^evolve: mesh=8; it must be a mesh"):
        evolve(x, v, N, 0.5, spec=SIXTH, mesh=8)


def test_what_ends_a_run_over_devices_is_asked_of_the_state_of_one(monkeypatch):
    """Whose counts are not one a device; and where nothing ends a run, nothing is asked."""
    (x, v), asked = halves(STARS), []
    how = {"spec": SIXTH, "tracers": halves(sphere(16, 3)), "mesh": mesh.devices(8)}

    class Stopped(Exception):
        """Where the run would begin."""

    def stopped(step, start, steps, *, until, **rest):
        asked.append(until and until(start))
        raise Stopped

    monkeypatch.setattr(cluster, "run", stopped)
    for until in (None, lambda state: state.bodies.steps.shape == (2,) and state.time < 1):
        with pytest.raises(Stopped):
            evolve(x, v, N, 1.0, until=until, **how)
    assert asked == [None, True]
