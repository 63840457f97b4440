"""The one call for planets: a run from the start, its pure twin, a condition, a restart."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile

from jaxgpu.physics.nbody.planets import integrate
from jaxgpu.physics.nbody.planets.planetary import Planetary
from jaxgpu.physics.nbody.planets.wisdom_holman import WisdomHolman
from jaxgpu.physics.nbody.steps.leapfrog import Leapfrog
from jaxgpu.run import Run, rollout

GM = np.array([1.0, 1e-3, 3e-4])
X = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1.7, 0.1]])
V = np.array([[0.0, 0, 0], [0, 1, 0], [-0.76, 0, 0]])
TRACERS = np.array([[0.0, 0, 0.5]]), np.array([[1.4, 0, 0]])


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


def far(bound, state):
    return jnp.linalg.norm(state.x[1] - state.x[0]) > bound


@pytest.mark.slow
def test_all_specs_agree_and_keep_a_history_from_the_start():
    ends = {}
    for name, spec in specs().items():
        measure = spec.inertial if name == "wisdom-holman" else places
        course = integrate(spec, X, V, 1.0, measure=measure)
        assert isinstance(course, Run)
        history = course.history[0] if name == "wisdom-holman" else course.history
        assert history.shape == (1 + round(1 / spec.dt), 3, 3) and history.dtype == np.float64
        np.testing.assert_allclose(history[0], X, atol=1e-15)
        ends[name] = history[-1]
    np.testing.assert_allclose(ends["leapfrog"], ends["planetary"], atol=1e-7)
    np.testing.assert_allclose(ends["wisdom-holman"], ends["planetary"], atol=1e-5)


def test_a_second_call_compiles_nothing_and_other_masses_are_no_other_program():
    end = lambda spec: np.asarray(integrate(spec, X, V, 1.0).state.x)
    first = {name: end(spec) for name, spec in specs().items()}
    with no_compile():
        for name, spec in specs(1.01).items():
            assert np.abs(end(spec) - first[name]).max() > 1e-4


@pytest.mark.slow
def test_the_pure_twin_has_the_same_states(x64):
    spec = specs()["planetary"]
    course = integrate(spec, X, V, 1.0, measure=places, tracers=TRACERS)
    go = jax.jit(lambda state: rollout(spec.step, state, 8, measure=places))
    end, history = go(spec.init(X, V, TRACERS))
    np.testing.assert_allclose(course.history, history, atol=1e-14)
    np.testing.assert_allclose(course.state.tracers.x, end.tracers.x, atol=1e-13)


@pytest.mark.slow
def test_it_ends_where_it_is_told_and_goes_on_from_a_checkpoint(tmp_path):
    spec = specs()["wisdom-holman"]
    left = integrate(spec, X, V, 4.0, measure=places, until=partial(far, 1.0001))
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
