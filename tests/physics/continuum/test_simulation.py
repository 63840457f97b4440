"""`simulate` on the host: one compilation, measures, an end condition; and its pure version."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conformance import no_compile
from continuum_run import jit_unoptimized

from jaxgpu.geometry import sdf
from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.continuum import Body, Grid, Scene, fill_box, rollout, simulate, simulation
from jaxgpu.physics.continuum.materials import Liquid, NeoHookean
from jaxgpu.physics.continuum.simulation import FrameRecord, _raise_lost
from jaxgpu.physics.continuum.tools import Collider

DX = 1 / 10
X = np.asarray(fill_box((0.2, 0.3), (0.5, 0.6), DX / 2))


def scene(stiffness=1.0, drift=0.0):
    """Make two materials and a tool, with variable parameter values."""
    left = X[:, 0] < 0.4
    bodies = (
        Body(X[left], Liquid(1e4 * stiffness), (DX / 2) ** 2, v=(drift, 0.0)),
        Body(X[~left], NeoHookean(1e4 * stiffness), (DX / 2) ** 2, 700.0 * stiffness),
    )
    ball = Collider(sdf.Ball(0.1 * stiffness), (0.5, 0.2), friction=0.1 * stiffness)
    return Scene(bodies, Grid(DX, (10, 10)), (0.0, -9.81 * stiffness), (ball,))


@pytree
class Above:
    """A measure with a parameter."""

    level: float

    def height(self, state):
        """Return the mass above the level in kg."""
        return sum(jnp.sum(jnp.where(b.x[:, 1] > self.level, b.m, 0)) for b in state.bodies)


def height(state):
    return jnp.stack([jnp.sum(b.m * b.x[:, 1]) / jnp.sum(b.m) for b in state.bodies])


def is_low(state):
    return height(state)[0] < 0.43


def test_the_first_frame_that_lost_a_particle_is_named():
    lost, t, none = np.array([0, 1, 5]), np.array([0.0, 0.1, 0.2]), np.zeros((3, 2), bool)
    with pytest.raises(FloatingPointError, match="simulate: 1 particles were .* at t=0.1 s"):
        _raise_lost(FrameRecord(None, lost, t, none.astype(int), none))
    tools = np.array([[False, False], [False, True], [True, True]])
    with pytest.raises(FloatingPointError, match=r"colliders\[1\] was outside .* at t=0.1 s"):
        _raise_lost(FrameRecord(None, lost, t, none.astype(int), tools))


def test_a_frame_is_as_many_steps_as_it_says_and_each_of_them_is_corrected(monkeypatch):
    count_step = lambda scene, state, correction: (state[0] + 1, state[1] + correction)
    monkeypatch.setattr(simulation.engine, "step", count_step)
    frame = simulation.FrameStepper(scene(), jnp.int32(20), height).step
    np.testing.assert_array_equal(frame((jnp.int32(0), jnp.int32(0))), [20, 20])


@pytest.mark.slow
def test_a_second_run_compiles_nothing_and_costs_next_to_nothing():
    measure = lambda level: Above(level).height
    simulate(scene(), 0.05, frames=2, measure=measure(0.4), until=is_low)
    with no_compile():
        began = time.process_time()
        # Other values also lead to another time step and number of steps.
        other = simulate(scene(1.1, 0.2), 0.04, frames=2, measure=measure(0.44), until=is_low)
        spent = time.process_time() - began - other.timing.run
    assert spent < 0.1 and other.timing.compile == 0


@pytest.mark.slow
def test_a_history_begins_at_the_start_and_ends_where_it_is_told():
    whole = simulate(scene(), 0.2, frames=10, measure=height)
    assert whole.history.shape == (11, 2)
    start = jax.jit(height)(scene().prepare().init())
    np.testing.assert_allclose(whole.history[0], start, rtol=1e-6)
    short = simulate(scene(), 0.2, frames=10, measure=height, until=is_low)
    count = int(np.argmax(whole.history[:, 0] < 0.43))
    assert 0 < count < 10 and short.history.shape == (count + 1, 2)
    np.testing.assert_array_equal(short.history, whole.history[: count + 1])


@pytest.mark.slow
def test_a_rollout_is_the_twin_of_a_run():
    run = simulate(scene(), 0.06, frames=3, measure=height)
    ready = scene().prepare()
    substeps = int(np.ceil(0.02 / float(ready.dt) - 1e-6))

    def twin(stiffness):
        own = scene(stiffness)
        own = Scene(own.bodies, own.grid, own.gravity, own.colliders, 0.02 / substeps, sharp=False)
        end, history = rollout(own, own.init(), 3, substeps=substeps, measure=height)
        return history[-1, 0], (end.bodies[1].x, history)

    several = jit_unoptimized(jax.vmap(jax.value_and_grad(twin, has_aux=True)))
    (_, (x, histories)), slope = several(np.float32([1.0, 1.1]))
    np.testing.assert_allclose(histories[0], run.history, rtol=1e-5)
    np.testing.assert_allclose(x[0], run.state.bodies[1].x, atol=1e-5)
    assert np.isfinite(slope).all() and (slope < 0).all()  # heavier gravity draws it down


@pytest.mark.slow
def test_particles_are_arrays_of_slots_under_every_transformation():
    ready = scene().prepare()
    state = ready.init()
    liquid, solid = state.bodies
    count = (X[:, 0] < 0.4).sum()
    np.testing.assert_array_equal(np.asarray(liquid.active), np.arange(liquid.m.size) < count)
    np.testing.assert_array_equal(liquid.x[:count], X[X[:, 0] < 0.4])
    assert solid.internal.shape == (solid.m.size, 2, 2) == solid.C.shape
    np.testing.assert_array_equal(liquid.internal, np.ones(liquid.m.size))
    new = solid.x + 0.01 * jnp.arange(2.0)[None]
    gradient = jnp.arange(4.0 * solid.m.size).reshape(-1, 2, 2)
    moved = jax.jit(lambda p: p.replace(x=new, C=gradient, internal=2 * p.internal))(solid)
    np.testing.assert_array_equal(moved.x, new)
    np.testing.assert_array_equal(moved.C, gradient)
    np.testing.assert_array_equal(moved.internal, 2 * solid.internal)
    np.testing.assert_array_equal(moved.chunks.C[1][0].ravel(), gradient[:, 1, 0])
    np.testing.assert_array_equal(moved.v, solid.v)
    both = jax.tree.map(lambda *a: jnp.stack(a), solid, moved)
    assert both.x.shape == (2, *solid.x.shape) and both.internal.shape == (2, *solid.C.shape)
    np.testing.assert_array_equal(jax.vmap(lambda p: p.x)(both), both.x)
    np.testing.assert_array_equal(
        jax.grad(lambda x: jnp.sum(moved.replace(x=x).x ** 2))(new), 2 * new
    )
    with pytest.raises(ValueError, match="broadcast"):
        solid.replace(x=new[:3])


def test_a_run_is_one_frame_unless_told_otherwise(monkeypatch):
    """The history contains the start and the end."""
    monkeypatch.setattr(simulation.engine, "step", lambda scene, state, correction: state)
    assert simulate(scene(), 0.02, measure=lambda state: state.t).history.shape == (2,)
