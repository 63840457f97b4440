"""`cluster`: conservation, isolated and in a galaxy, invalid input, and resumption.

Most runs are of 32 stars and 24 massless bodies with the same measures, whose programs they share.
"""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile
from nbody_inputs import energy, halves, points, sphere

from jaxgpu.devices import mesh
from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.nbody import Cluster, Hermite, Hermite6, Pairing, evolve, virialize
from jaxgpu.physics.nbody.clusters import cluster, tracer_sharding
from jaxgpu.physics.nbody.forces import potentials, tide
from jaxgpu.runs.loop import rollout

M = np.random.default_rng(32).uniform(0.2, 1.8, 32)
M /= M.sum()
N = np.random.default_rng(6).uniform(0.2, 1.8, 32)
N /= N.sum()
ANY = np.random.default_rng(0).normal(size=(6, 32))  # stars of which no run is made
SOFT = Hermite(softening=0.01)
SIXTH = Hermite6(eta=0.2, softening=0.01)
RUN_ONCE = {"xla_backend_optimization_level": 0}


@cache
def stars(seed=0):
    with jax.enable_x64(True):
        return sphere(seed, 32)


@cache
def virial_stars():
    with jax.enable_x64(True):
        return points(virialize(*halves(stars()), N))


def with_a_binary():
    """Make a sphere in which two stars are a hard binary of semi-major axis 1e-3, at e = 0.5."""
    x, m = stars().copy(), M[0] + M[1]
    apart = np.array([1.5e-3, 0, 0, 0, np.sqrt(m / 3e-3), 0])
    x[:, 1], x[:, 0] = x[:, 0] + apart * M[0] / m, x[:, 0] - apart * M[1] / m
    return x


def with_an_escape():
    """Make massless bodies, of which the eighth is outside 20 virial radii and leaves."""
    tracers = stars(3)[:, :24].copy()
    tracers[:, 7] = [30, 0, 0, 5, 0, 0]
    return tracers


def measures(state):
    # Return few numbers: the number of recorded rows is not part of a program.
    return {"first": state.x[0], "centre": state.m @ state.x, "taken": state.bodies.steps}


# Integrators of stars: the spec, the stars' positions and masses, and the energy tolerance.
KINDS = {
    "softened": (SOFT, stars, M, 1e-6),
    "in pairs": (Hermite(), with_a_binary, M, 1e-6),
    "sixth order": (replace(SIXTH, eta=0.1), virial_stars, N, 1e-10),
}


def run_kind(kind, t=0.5, **more):
    """Run the given integrator with massless bodies."""
    spec, places, m, _ = KINDS[kind]
    how = {"spec": spec, "tracers": halves(with_an_escape()), "measure": measures} | more
    return evolve(*halves(places()), m, t, **how)


cached_run = cache(run_kind)


def total(done):
    return done.history["kinetic"] + done.history["potential"]


def late(state):
    return state.time > 0.3


@pytest.mark.slow
def test_a_run_ends_where_it_is_told_whatever_the_global_precision():
    runs = []
    for wide in (False, True):
        with jax.enable_x64(wide):
            runs.append(evolve(*halves(stars()), M, 1.0, spec=SOFT, until=late))
    found = total(runs[0])
    assert float(runs[0].state.time) == 0.375 and found.shape == (4,)
    # The first row belongs to the start.
    np.testing.assert_allclose(found[0], sum(energy(stars(), M, 0.01)), rtol=1e-13)
    assert found.dtype == np.float64 and np.abs(found / found[0] - 1).max() < 1e-6
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    assert "Evolution" in repr(runs[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_keeps_its_energy_and_records_what_is_asked(kind):
    done, (_, places, m, off) = cached_run(kind), KINDS[kind]
    assert total(done).shape == (5,) and total(done).dtype == np.float64
    assert np.abs(total(done) / total(done)[0] - 1).max() < off
    first, centre = done.history["first"], done.history["centre"]
    assert first.shape == centre.shape == (5, 3) and done.x.shape == (32, 3)
    np.testing.assert_allclose(first[0], places()[:3, 0], rtol=1e-15)
    np.testing.assert_array_equal(first[-1], done.x[0])
    np.testing.assert_allclose(centre[[0, -1]], [places()[:3] @ m, m @ done.x], atol=1e-14)
    # The pair's 500 orbits cost no more than its centre.
    assert (done.history.get("pairs") > 0).all() == (kind == "in pairs")
    assert done.state.bodies.blocks < 2000


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_who_escapes_is_noted_and_left_alone(kind):
    done, (_, places, m, _) = cached_run(kind), KINDS[kind]
    assert done.history["gone"].tolist() == [0] + [1] * 4
    left, steps = jax.tree.map(np.asarray, (done.state.gone, done.state.bodies.tracers.dt))
    assert np.flatnonzero(left.gone).tolist() == [7] and left.time[7] == 0.125
    # Velocities are about the centre of mass; a unit mass at 30 slows it by 1.4e-4 in an interval.
    speed = np.linalg.norm(np.array([5.0, 0, 0]) - places()[3:] @ m)
    np.testing.assert_allclose(left.speed[7], speed, atol=2e-4)
    np.testing.assert_allclose(left.energy[7], speed**2 / 2 - 1 / 30.6, atol=2e-3)
    np.testing.assert_allclose(done.tracer_x[7], [30.625, 0, 0], atol=1e-3)  # where it was seen
    assert np.isinf(steps[7])  # and never due again


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_another_cluster_of_the_same_shape_compiles_nothing(kind):
    """Other positions, masses and values of the spec are operands of the existing program."""
    run_kind(kind, 0.25)  # JAX may have dropped the programs since `whole` was made
    spec = KINDS[kind][0]
    other = halves(stars(1)), halves(stars(2)[:, :24])
    m = N[::-1].copy()
    with no_compile():
        spec = replace(spec, eta=spec.eta / 2)
        done = evolve(*other[0], m, 0.25, spec=spec, tracers=other[1], measure=measures)
    assert total(done).shape == (3,)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_resumes_to_the_same_bits(tmp_path, kind):
    run_kind(kind, 0.25, out=tmp_path)
    again = run_kind(kind, out=tmp_path, resume=True)
    jax.tree.map(np.testing.assert_array_equal, cached_run(kind).state, again.state)
    jax.tree.map(np.testing.assert_array_equal, cached_run(kind).history, again.history)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["softened", "in pairs"])
def test_tracers_over_eight_devices_go_the_way_of_one(tmp_path, kind):
    """The stars on every device are bitwise equal to one device's, without communication in a step.

    Tracers have other rounding, because the compiler makes another program of them.
    """
    one, eight = cached_run(kind), jax.make_mesh((8,), ("tracers",))
    many = run_kind(kind, mesh=eight)
    alike = np.testing.assert_array_equal
    jax.tree.map(alike, many.state.bodies.stars, one.state.bodies.stars)
    jax.tree.map(alike, many.history, one.history)
    jax.tree.map(alike, many.state.gone.gone, one.state.gone.gone)
    np.testing.assert_allclose(many.tracer_x, one.tracer_x, atol=1e-9)
    jax.tree.map(lambda a, b: alike(np.shape(a), np.shape(b)), many.state, one.state)
    for leaf in jax.tree.leaves((many.state.bodies.stars, many.state.points)):
        copies = [np.asarray(copy.data) for copy in leaf.addressable_shards]
        assert len(copies) == 8 and all((copy == copies[0]).all() for copy in copies)
    run_kind(kind, 0.25, out=tmp_path, mesh=eight)
    rest = run_kind(kind, out=tmp_path, resume=True, mesh=eight)
    jax.tree.map(alike, rest.state, many.state)
    assert rest.timing.compile == 0


@pytest.mark.slow
def test_the_pure_twin_is_mapped_and_differentiated(x64):
    """Run two clusters in one program; take the slope of an energy in all masses."""
    spec = Cluster(SOFT)
    x, v = (jnp.stack(q) for q in zip(*(halves(stars(seed)) for seed in (0, 1))))

    def kinetic(mass, x, v):
        start = spec.init(x, v, mass * jnp.asarray(M))
        return rollout(spec.step, start, 1, measure=spec.measure)[1]["kinetic"]

    vmap_energy = lambda mass: jax.vmap(lambda x, v: kinetic(mass, x, v))(x, v)
    given = jax.jit(lambda: jax.jvp(vmap_energy, (1.0,), (1.0,)), compiler_options=RUN_ONCE)
    rows, slope = given()
    assert rows.shape == (2, 2) and np.isfinite(slope).all() and (slope[:, 1] != 0).all()
    one = evolve(x[0], v[0], M, 0.125, spec=SOFT, until=late)
    np.testing.assert_allclose(rows[0], one.history["kinetic"], rtol=1e-12)


@pytest.mark.slow
def test_stars_in_a_galaxy_keep_their_energy():
    """Check the energy of their total motion in the galaxy, without the origin's."""
    mass, far = 1e6, 100.0
    turn = np.sqrt(mass / far**3)
    origin = tide.Origin(jnp.array([far, 0, 0]), jnp.array([0, turn * far, 0]))
    field = tide.Tide(potentials.PointMass(mass), origin)
    spec = replace(SIXTH, tide=field, interval=1 / 64)
    done = evolve(*halves(virial_stars()), N, 0.5, spec=spec)

    def whole_energy(x, origin):
        m = N
        place = np.concatenate([origin.x, origin.v])[:, None] + x
        inner = energy(x, m, 0.01)[1]
        outer = -(m * mass / np.linalg.norm(place[:3], axis=0)).sum()
        return (m * (place[3:] ** 2).sum(0)).sum() / 2 + inner + outer

    after = whole_energy(points((done.x, done.v)), done.state.bodies.origin)
    # Errors are relative to the cluster's energy, 1/4; the galaxy's, 4e4 times that, is rounded.
    assert abs(after - whole_energy(virial_stars(), origin)) < 1e-8


@pytree
class Broken(Hermite):
    """Steps that only corrupt the state."""

    low: jax.Array | float = 0.0  # how many were floored
    missed: jax.Array | float = 0.0  # how many pairs were refused
    places: jax.Array | float = 1.0  # what places become of themselves
    speeds: jax.Array | float = 1.0

    def step(self, state):
        to_int = lambda q: jnp.asarray(q).astype(jnp.int32)
        return replace(
            heat_stars(self, state), floored=to_int(self.low), refused=to_int(self.missed)
        )


@pytree
class Broken6(Hermite6):
    """Steps that only corrupt the state."""

    low: jax.Array | float = 0.0
    places: jax.Array | float = 1.0
    speeds: jax.Array | float = 1.0

    def step(self, state):
        return replace(heat_stars(self, state), floored=jnp.asarray(self.low).astype(jnp.int32))


def heat_stars(spec, state):
    by = jnp.repeat(jnp.stack([spec.places, spec.speeds]), 3)[:, None]
    return replace(state, stars=replace(state.stars, x=state.stars.x * by))


def assert_fails(spec, sentence, t=0.125, **how):
    with pytest.raises(RuntimeError, match=sentence):
        evolve(*halves(stars()), M, t, spec=replace(spec, softening=0.01), **how)


def test_what_went_wrong_on_the_way_is_not_silent():
    assert_fails(Broken(low=3), "evolve: 3 steps should have been below the minimum, .*softening")
    refused = "evolve: 3 times a close pair found none of 0 slots free; set Pairing.slots to"
    assert_fails(Broken(missed=3), refused)
    assert_fails(Broken(places=np.nan), "evolve: positions of stars became non-finite, .*")


@pytest.mark.slow
def test_a_step_below_the_floor_is_not_silent():
    sentence = r"evolve: 3 steps .* below the minimum, interval / 2\^40; .* or use Hermite,"
    assert_fails(Broken6(low=3), sentence)


@pytest.mark.parametrize("broken", [Broken, pytest.param(Broken6, marks=pytest.mark.slow)])
def test_a_run_whose_energy_is_lost_says_so_where_it_was(broken):
    """Energy rises by a thousandth in each interval."""
    wrong = broken(softening=0.01, speeds=1.001)
    sentence = r"evolve: the energy is off by 0.00\d+ of M\^2 / 4 R_v at t = 0.125, more than toler"
    assert_fails(wrong, sentence, 1.0)
    done = evolve(*halves(stars()), M, 1.0, spec=wrong, tolerance=np.inf)
    assert done.history["kinetic"].shape == (9,) and float(done.state.time) == 1


def change_entry(index, value):
    x = ANY.copy()
    x[index] = value
    return x


ORIGIN = tide.Origin(jnp.array([9.0, 0, 0]), jnp.zeros(3))
TIDE = tide.Tide(potentials.PointMass(1.0), ORIGIN)


@pytest.mark.parametrize(
    "places, m, more, sentence",
    [
        (ANY[:, :1], M[:1], {}, "evolve: x: 1 stars; must be .*, N at least 2"),
        (ANY, M[:5], {}, r"evolve: m has shape \[5\]; it must be \[32\]"),
        (ANY, -M, {}, "m: star .* has -0.0.*; must be positive"),
        (ANY, 0 * M, {}, "m: star 0 has 0.0; must be positive; or make it a tracer"),
        (
            change_entry((2, 7), np.nan),
            M,
            {},
            r"evolve: x=nan at \[7, 2\]; it must be a finite number",
        ),
        (np.repeat(ANY[:, :16], 2, axis=1), M, {}, r"x: star \d+ coincides with another"),
        (
            ANY,
            M,
            {"tracers": np.zeros((2, 6, 4))},
            r"evolve: tracers=ndarray; it must be positions and velocities",
        ),
        (
            ANY,
            M,
            {"tracers": (np.zeros((3, 4)), np.zeros((3, 4)))},
            r"evolve: tracers.x has shape \[3, 4\]; it must be",
        ),
        (
            ANY,
            M,
            {"tracers": halves(np.full((6, 4), np.inf))},
            r"evolve: tracers.x=inf at \[0, 0\]; it must be a finite number",
        ),
        (ANY, M, {"tracers": halves(ANY[:, 9:11])}, "tracers: body 0 coincides with a st"),
        (
            ANY,
            M,
            {"spec": Hermite(eta=0.0)},
            "evolve: Hermite.eta=0; it must be a finite number above 0",
        ),
        (
            ANY,
            M,
            {"spec": Hermite(softening=np.nan)},
            "evolve: Hermite.softening=nan; it must be a finite number of at least 0",
        ),
        (
            ANY,
            M,
            {"spec": replace(SIXTH, interval=0.0)},
            "evolve: Hermite6.interval=0; it must be a finite number above 0",
        ),
        (
            ANY,
            M,
            {"spec": Cluster(SOFT, edge=0.0)},
            "evolve: Cluster.edge=0; it must be a number or infinity above 0",
        ),
        (ANY, M, {"spec": "fast"}, "evolve: spec='fast'; it must be a Hermite, a Hermite6"),
        (
            ANY,
            M,
            {"spec": Hermite(pairing=Pairing(slots=-1))},
            "evolve: Pairing.slots=-1; it must be a whole number of at least 0",
        ),
        (
            ANY,
            M,
            {"tolerance": 0.0},
            "evolve: tolerance=0; it must be a number or inf.* above 0",
        ),
        (ANY, M, {"t": 0.3}, "evolve: t=0.3; it must be a multiple of the interval, 0.125"),
        (ANY, M, {"t": -1.0}, "evolve: t=-1; it must be a finite number of at least 0"),
        (
            ANY,
            M,
            {"spec": replace(SIXTH, tide=TIDE), "tolerance": 0.1},
            "evolve: tolerance=0.1; a cluster in a galaxy does not",
        ),
    ],
)
def test_bad_input_gets_a_sentence(places, m, more, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        evolve(*halves(places), m, **{"t": 0.125, **more})


@pytest.mark.parametrize("unbound", [1, "no", None, np.float64(1), jnp.ones(()), jnp.arange(2)])
def test_whether_a_cluster_is_alone_is_a_bool(unbound):
    with pytest.raises(TypeError, match=r"^Cluster.unbound=.*; it must be a bool; True if it is"):
        Cluster(SOFT, unbound=unbound).init(*cold_eight())


def test_rows_and_columns_are_not_mixed_up():
    with pytest.raises(ValueError, match=r"evolve: x has shape \[3, 32\]; it must be \[N, 3\]"):
        evolve(ANY[:3], ANY[3:], M, 0.125)


def cold_eight():
    rng = np.random.default_rng(8)
    return rng.normal(size=(3, 8)).T, np.zeros((8, 3)), rng.uniform(0.5, 1.5, 8) / 8


@pytest.mark.slow
def test_eight_cold_stars_are_held_to_their_tolerance():
    """Steps of this length cannot resolve their collapse; the error states this and the time."""
    x, v, m = cold_eight()
    with pytest.raises(RuntimeError, match="evolve: the energy is off by .* at t = [123].*eta sm"):
        evolve(x, v, m, 4.0, tolerance=1e-6)
    done = evolve(x, v, m, 4.0, spec=Hermite(eta=0.002), tolerance=1e-6)
    assert len(total(done)) == 33 and abs(total(done) / total(done)[0] - 1).max() < 1e-6


@pytest.mark.slow
def test_a_step_over_eight_devices_asks_none_of_another(x64):
    eight, spec = mesh.make_mesh(8), Cluster(SIXTH, edge=np.float64(20.0))
    x, v = halves(ANY)
    state, step = tracer_sharding.shard_state(
        spec, spec.init(x, v, N, halves(ANY[:, :16] + 9)), eight
    )
    text = jax.jit(step).lower(state).compile(RUN_ONCE).as_text()
    assert not any(word in text for word in ("all-reduce", "all-gather", "collective-permute"))


@pytest.mark.slow
def test_meshes_that_do_not_fit_are_refused_in_a_sentence():
    eight, (x, v) = mesh.make_mesh(8), halves(ANY)
    with pytest.raises(ValueError, match="^evolve: mesh of 8 devices, and no tracers; bodies with"):
        evolve(x, v, N, 0.5, spec=SIXTH, mesh=eight)
    with pytest.raises(ValueError, match="^evolve: mesh of 8 devices for 20 independent bodies"):
        evolve(x, v, N, 0.5, spec=SIXTH, mesh=eight, tracers=halves(ANY[:, :20] + 9))
    with pytest.raises(TypeError, match="^evolve: mesh=8; it must be a mesh"):
        evolve(x, v, N, 0.5, spec=SIXTH, mesh=8)


def test_what_ends_a_run_over_devices_is_asked_of_the_state_of_one(monkeypatch):
    """The state's counts are not per device; without a condition, nothing is evaluated."""
    (x, v), asked = halves(ANY), []
    how = {"spec": SIXTH, "tracers": halves(ANY[:, :16] + 9), "mesh": mesh.make_mesh(8)}

    class Stopped(Exception):
        """Mark the point where the run would begin."""

    def stop_run(step, start, steps, *, until, **rest):
        asked.append(until and until(start))
        raise Stopped

    monkeypatch.setattr(cluster, "run", stop_run)
    for until in (None, lambda state: state.bodies.steps.shape == (2,) and state.time < 1):
        with pytest.raises(Stopped):
            evolve(x, v, N, 1.0, until=until, **how)
    assert asked == [None, True]
