"""`integrate` for planets: a run from the start, its pure version, a condition, a restart."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile

from jaxgpu.devices import mesh
from jaxgpu.physics.nbody import sharding
from jaxgpu.physics.nbody.planets import Ensemble, integrate
from jaxgpu.physics.nbody.planets.planetary import Planetary
from jaxgpu.physics.nbody.planets.wisdom_holman import WisdomHolman
from jaxgpu.physics.nbody.steps.leapfrog import Leapfrog
from jaxgpu.runs.loop import Run, rollout

GM = np.array([1.0, 1e-3, 3e-4])
X = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1.7, 0.1]])
V = np.array([[0.0, 0, 0], [0, 1, 0], [-0.76, 0, 0]])
RUN_ONCE = {"xla_backend_optimization_level": 0}
TRACERS = np.array([[0.0, 0, 0.5]]), np.array([[1.4, 0, 0]])


def disc():
    """Return positions and velocities [64, 3] of massless bodies on nearly circular orbits."""
    rng = np.random.default_rng(0)
    angle, r = rng.uniform(0, 2 * np.pi, 64), rng.uniform(0.1, 2.5, (64, 1))
    x = r * np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
    return x, np.stack([-np.sin(angle), np.cos(angle), 0.1 * angle], 1) / np.sqrt(r)


def pull(gm, t, x):
    d = x[None] - x[:, None]
    r2 = jnp.sum(d * d, -1) + jnp.eye(3)
    return jnp.sum((gm[None] * r2**-1.5)[..., None] * d, 1)


def specs(scale=1.0):
    gm = scale * GM
    return {
        "planetary": Planetary(gm, 0.125, light=np.inf, substeps=2),
        "wisdom-holman": WisdomHolman(gm, 0.0078125),
        "leapfrog": Leapfrog(partial(pull, gm), 0.0078125, 4),
    }


def places(state):
    return state.x


def measure_of(spec):
    return spec.to_inertial if isinstance(spec, WisdomHolman) else places


def is_far(bound, state):
    return jnp.linalg.norm(state.x[1] - state.x[0]) > bound


@pytest.mark.slow
def test_all_specs_agree_and_keep_a_history_from_the_start():
    ends = {}
    for name, spec in specs().items():
        course = integrate(spec, X, V, 1.0, measure=measure_of(spec))
        assert isinstance(course, Run)
        history = course.history[0] if name == "wisdom-holman" else course.history
        assert history.shape == (1 + round(1 / spec.dt), 3, 3) and history.dtype == np.float64
        np.testing.assert_allclose(history[0], X, atol=1e-15)
        ends[name] = history[-1]
    np.testing.assert_allclose(ends["leapfrog"], ends["planetary"], atol=1e-7)
    np.testing.assert_allclose(ends["wisdom-holman"], ends["planetary"], atol=1e-5)


@pytest.mark.slow
def test_a_second_call_compiles_nothing_and_other_masses_are_no_other_program():
    run = lambda spec: integrate(spec, X, V, 1.0, measure=measure_of(spec))
    end = lambda spec: np.asarray(run(spec).state.x)
    first = {name: end(spec) for name, spec in specs().items()}
    with no_compile():
        for name, spec in specs(1.01).items():
            assert np.abs(end(spec) - first[name]).max() > 1e-4


@pytest.mark.slow
def test_the_pure_twin_has_the_same_states(x64):
    spec = specs()["planetary"]
    course = integrate(spec, X, V, 1.0, measure=places, tracers=disc())
    twin = lambda state: rollout(spec.step, state, 8, measure=places)
    go = jax.jit(twin, compiler_options=RUN_ONCE)
    end, history = go(spec.init(X, V, disc()))
    np.testing.assert_allclose(course.history, history, atol=1e-14)
    np.testing.assert_allclose(course.state.tracers.x, end.tracers.x, atol=1e-13)


@pytest.mark.slow
def test_it_ends_where_it_is_told_and_goes_on_from_a_checkpoint(tmp_path):
    spec = specs()["wisdom-holman"]
    left = integrate(spec, X, V, 4.0, measure=places, until=partial(is_far, 1.0001))
    assert 1 < len(left.history) < 513
    apart = np.linalg.norm(left.history[:, 1] - left.history[:, 0], axis=1)
    assert apart[-1] > 1.0001 and (apart[:-1] <= 1.0001).all()
    whole = integrate(spec, X, V, 2.0)
    integrate(spec, X, V, 1.0, out=tmp_path)
    again = integrate(spec, X, V, 2.0, out=tmp_path, resume=True)
    jax.tree.map(np.testing.assert_array_equal, again.state, whole.state)


def test_wrong_calls_are_refused_in_a_sentence():
    spec = specs()["planetary"]
    for t in (1.0625, -1.0):
        with pytest.raises(ValueError, match=f"^integrate: t={t:g}; it must be a multiple of dt="):
            integrate(spec, X, V, t)
    with pytest.raises(ValueError, match="^integrate: tracers for WisdomHolman; it must"):
        integrate(specs()["wisdom-holman"], X, V, 1.0, tracers=TRACERS)
    with pytest.raises(ValueError, match="^integrate: m for WisdomHolman; an Ensemble takes"):
        integrate(specs()["wisdom-holman"], X, V, 1.0, m=GM)
    with pytest.raises(ValueError, match="^integrate: no m for Ensemble; an Ensemble takes"):
        integrate(Ensemble(dt=0.5), X[None], V[None], 1.0)


@pytest.mark.slow
def test_meshes_that_do_not_fit_are_refused_in_a_sentence():
    eight, spec = mesh.make_mesh(8), specs()["planetary"]
    with pytest.raises(ValueError, match="^integrate: mesh for WisdomHolman, whose bodies all"):
        integrate(specs()["wisdom-holman"], X, V, 1.0, mesh=eight)
    with pytest.raises(ValueError, match="^integrate: mesh of 8 devices for 1 independent bodies"):
        integrate(spec, X, V, 1.0, tracers=TRACERS, mesh=eight)
    with pytest.raises(ValueError, match="^integrate: mesh of 8 devices, and no tracers; bodies"):
        integrate(spec, X, V, 1.0, mesh=eight)
    with pytest.raises(TypeError, match="^integrate: mesh=8; it must be a mesh"):
        integrate(spec, X, V, 1.0, tracers=TRACERS, mesh=8)
    with pytest.raises(ValueError, match=r"^Ensemble.partition: dt has shape \[8\]; over several"):
        spec = Ensemble(dt=np.full(8, 0.5, np.float32))
        state = spec.init(*(np.stack([q] * 8).astype(np.float32) for q in (X, V, GM)))
        sharding.shard_state("integrate", spec, state, eight)


def pairs(count):
    """Return positions, velocities [M, 2, 3] and masses [M, 2] of unlike bound pairs."""
    rng = np.random.default_rng(count)
    x, v = np.zeros((2, count, 2, 3))
    x[:, 1], v[:, 1] = rng.uniform(0.5, 1.5, (2, count, 3))
    return x, 0.5 * v, rng.uniform(0.5, 2.0, (count, 2))


@pytest.mark.slow
def test_systems_over_eight_devices_have_the_bits_of_one(x64, tmp_path):
    x, v, m = pairs(16)
    eight, spec = jax.make_mesh((8,), ("systems",)), Ensemble(dt=0.25)
    one = integrate(spec, x, v, 0.5, m=m)
    many = integrate(spec, x, v, 0.5, m=m, mesh=eight)
    jax.tree.map(np.testing.assert_array_equal, many.state, one.state)
    assert many.state.x.sharding.shard_shape(x.shape) == (2, 2, 3)
    assert len(set(one.state.steps.tolist())) > 1
    integrate(spec, x, v, 0.25, m=m, mesh=eight, out=tmp_path)
    rest = integrate(spec, x, v, 0.5, m=m, mesh=eight, out=tmp_path, resume=True)
    assert rest.timing.compile == 0
    jax.tree.map(np.testing.assert_array_equal, rest.state, one.state)


@pytest.mark.slow
def test_tracers_over_eight_devices_have_the_bits_of_one(x64, tmp_path):
    """The massive bodies, which all devices move, are also bitwise equal on each."""
    eight, how = mesh.make_mesh(8), {"tracers": disc(), "measure": places}
    one = integrate(specs()["planetary"], X, V, 2.0, **how)
    many = integrate(specs()["planetary"], X, V, 2.0, mesh=eight, **how)
    jax.tree.map(np.testing.assert_array_equal, many.state, one.state)
    np.testing.assert_array_equal(many.history, one.history)
    assert len(set(one.state.tracers.level.tolist())) > 1
    assert many.state.tracers.a.sharding.shard_shape((8, 3, 64)) == (8, 3, 8)
    copies = [np.asarray(copy.data) for copy in many.state.x.addressable_shards]
    assert len(copies) == 8 and all((copy == copies[0]).all() for copy in copies)
    integrate(specs()["planetary"], X, V, 1.0, mesh=eight, out=tmp_path, **how)
    how |= {"out": tmp_path, "resume": True}
    rest = integrate(specs()["planetary"], X, V, 2.0, mesh=eight, **how)
    assert rest.timing.compile == 0
    jax.tree.map(np.testing.assert_array_equal, rest.state, one.state)
    program = jax.jit(sharding.step, static_argnums=0)
    text = program.lower(eight, specs()["planetary"], many.state).compile(RUN_ONCE).as_text()
    assert not any(word in text for word in ("all-reduce", "all-gather", "collective-permute"))
