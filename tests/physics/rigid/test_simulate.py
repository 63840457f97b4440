"""Motion in time against MuJoCo's, exact solutions, and conserved quantities."""

import dataclasses

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from rigid_mechanisms import MUJOCO, arm, pendulum
from shapes import check_shapes

from jaxgpu.physics import rigid
from jaxgpu.physics.rigid import Drive, Link, Simulation, State, assemble, from_mjcf, passive
from jaxgpu.run import run

STEP = jax.jit(Simulation.step)


def rollout(spec, state, steps, measure=lambda state: state):
    advance = lambda state, _: ((new := spec.step(state)), measure(new))
    return jax.jit(lambda state: jax.lax.scan(advance, state, length=steps))(state)


def simulation(tree, dt, stiffness=0.0, damping=0.0):
    full = lambda x: jnp.full(tree.nv, x, tree.mass.dtype)
    return Simulation(tree, Drive(full(stiffness), full(damping)), dt)


NO_SPRINGS = [i for i, record in enumerate(MUJOCO["trees"]) if not record["springs"]]


@pytest.mark.parametrize("i", NO_SPRINGS)
def test_motion_is_that_of_mujoco(x64, i):
    """50 steps of semi-implicit Euler with implicit damping, free bodies and their quaternions too.

    Tolerance: rounding (1e-15) times the condition of M (4e3) times the growth over 50 steps.
    """
    record = MUJOCO["trees"][i]
    tree = from_mjcf(record["xml"], dtype=jnp.float64)
    q, v = (jnp.array(record["states"][0][name]) for name in ("q", "v"))
    end, _ = rollout(simulation(tree, MUJOCO["dt"]), State(q, v), MUJOCO["steps"])
    np.testing.assert_allclose(end.q, record["end"]["q"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(end.v, record["end"]["v"], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_energy_of_a_double_pendulum_errs_in_proportion_to_the_step(x64):
    """Semi-implicit Euler is of first order: over 10 s the error is bounded and halves with dt."""
    masses, lengths = jnp.array([0.6, 1.7]), jnp.array([0.8, 1.3])
    tree = pendulum(masses, lengths)

    def energy(state):
        frames = rigid.forward_kinematics(tree, state.q)
        height = frames.x[:, 2] - lengths * frames.R[:, 2, 2]
        kinetic = 0.5 * state.v @ (rigid.mass_matrix(tree, state.q) @ state.v)
        return kinetic + 9.81 * jnp.sum(masses * height)

    start = State(jnp.array([1.0, 0.5]), jnp.zeros(2))
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        _, e = rollout(simulation(tree, dt), start, int(10 / dt), energy)
        errors.append(float(jnp.abs(e - energy(start)).max()))
    exchanged = energy(start) - energy(State(jnp.zeros(2), jnp.zeros(2)))
    assert errors[0] < 0.04 * exchanged
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 2, atol=0.3)


@pytest.mark.slow
def test_a_free_body_keeps_its_momentum_and_falls(x64):
    top = Link(-1, "free", com=(0, 0, 0), inertia=np.diag([1.0, 2.0, 3.0]), mass=2.0)
    tree = assemble([top], dtype=jnp.float64)
    spin = jnp.array([1.0, 2.0, 0.5, 0.1, 3.0, 0.1])
    start = State(simulation(tree, 1e-4).init().q, spin)

    def angular_momentum(state):
        R = rigid.forward_kinematics(tree, state.q).R[0]
        return jnp.sum(R * (jnp.array([1.0, 2.0, 3.0]) * state.v[3:])[None], 1)

    end, L = rollout(simulation(tree, 1e-4), start, 10_000, angular_momentum)
    first = angular_momentum(start)
    drift = jnp.abs(L - first[None]).max()
    assert drift < 2e-3 * jnp.linalg.norm(first)  # of first order in dt
    np.testing.assert_allclose(end.v[:3], [1, 2, 0.5 - 9.81], atol=1e-9)
    np.testing.assert_allclose(end.q[:3], [1, 2, 0.5 - 9.81 / 2], atol=1e-3)
    np.testing.assert_allclose(jnp.linalg.norm(end.q[3:]), 1, atol=1e-14)


@pytest.mark.slow
def test_stiff_motors_hold_at_large_steps():
    """Gains of 10,000 and 1,000 at 20 ms; the static error is the gravity torque over the gain."""
    tree = arm()
    spec = simulation(tree, 0.02, 1e4, 1e3)
    target = jnp.array([0.3, 0.8, -0.5, 0.9, 0.2, -0.7, 0.1])

    def advance(state, _):
        return spec.step(state, target), ()

    go = jax.jit(lambda s: jax.lax.scan(advance, s, length=400)[0])
    end = go(spec.init())
    torque = rigid.inverse_dynamics(tree, end.q, jnp.zeros(7), jnp.zeros(7))
    np.testing.assert_allclose(end.q, target - torque / 1e4, atol=2e-6)
    np.testing.assert_allclose(end.v, 0, atol=1e-5)


def test_one_implicit_step_of_an_oscillator_is_exact(x64):
    """m v' = m v + h (-k (q + h v') - d v'), solved by hand."""
    link = Link(-1, "prismatic", mass=2.0, damping=0.7, stiffness=30.0, rest=0.1)
    tree = assemble([link], gravity=(0, 0, 0), dtype=jnp.float64)
    q, v, h = 0.4, -1.5, 0.3
    want = (2 * v - h * 30 * (q - 0.1)) / (2 + h * 0.7 + h * h * 30)
    new = STEP(simulation(tree, h), State(jnp.array([q]), jnp.array([v])))
    np.testing.assert_allclose(new.v, [want], rtol=1e-14)
    np.testing.assert_allclose(new.q, [q + h * want], rtol=1e-14)


@pytest.mark.parametrize("gravity, stop", [(-9.81, -0.2), (9.81, 0.3)])
def test_a_stop_yields_by_the_weight_over_its_stiffness(x64, gravity, stop):
    link = Link(-1, "prismatic", mass=2.0, lower=-0.2, upper=0.3)
    tree = assemble([link], gravity=(0, 0, gravity), dtype=jnp.float64)
    end, path = rollout(simulation(tree, 0.005), State(jnp.zeros(1), jnp.zeros(1)), 2000)
    np.testing.assert_allclose(end.q, stop + 2 * gravity / 1e4, rtol=1e-9)
    assert path.q.min() > -0.25 and path.q.max() < 0.35


def test_targets_and_forces_act(x64):
    tree = assemble([Link(-1, "prismatic", mass=2.0)], gravity=(0, 0, 0), dtype=jnp.float64)
    still = State(jnp.zeros(1), jnp.zeros(1))
    pushed = STEP(simulation(tree, 0.1), still, None, jnp.array([3.0]))
    np.testing.assert_allclose(pushed.v, 0.1 * 3 / 2)
    led = STEP(simulation(tree, 0.1, 50.0), still, jnp.array([0.4]))
    np.testing.assert_allclose(led.v, 0.1 * 50 * 0.4 / (2 + 0.01 * 50))


@pytest.mark.slow
def test_gradients_through_time_are_those_of_finite_differences(x64):
    tree = arm(2, dtype=jnp.float64)
    spec = simulation(tree, 0.01, 20.0, 0.5)

    def end(targets, q, mass):
        changed = dataclasses.replace(spec, tree=dataclasses.replace(tree, mass=mass))
        advance = lambda state, target: (changed.step(state, target), ())
        return jax.lax.scan(advance, State(q, jnp.zeros(2)), targets)[0].q

    args = (jnp.ones((20, 2)) * 0.3, jnp.array([0.1, 0.9]), tree.mass)
    check_grads(jax.jit(end), args, order=1, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_quaternion_turns_and_its_derivative_at_rest_is_finite(x64):
    tree = assemble([Link(-1, "free")], dtype=jnp.float64)
    q = jnp.asarray(tree.rest_position)
    quarter = rigid.simulate.integrate(tree, q, jnp.array([0, 0, 0, 0, 0, np.pi]), 0.5)
    np.testing.assert_allclose(quarter[3:], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-15)
    slope = jax.jacfwd(lambda v: rigid.simulate.integrate(tree, q, v, 1.0))(jnp.zeros(6))
    np.testing.assert_allclose(slope[4:, 3:], np.eye(3) / 2, atol=1e-15)


def test_runs_in_the_loop_of_the_package():
    spec = simulation(arm(2), 0.01)
    result = run(lambda state: spec.step(state), spec.init(), 5)
    assert check_shapes(result.state)["N"] == 2


@pytest.mark.slow
def test_conforms():
    spec = simulation(arm(2), 0.01, 5.0)
    state = State(jnp.array([0.2, 0.4]), jnp.array([0.5, -0.3]))
    conformance.check_state(lambda state: STEP(spec, state), state)


def test_bad_input_is_named():
    spec = simulation(arm(2), 0.01)
    with pytest.raises(ValueError, match=r"step: target has shape \(3,\)"):
        spec.step(spec.init(), jnp.zeros(3))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"dt": -0.01}, "Simulation.dt=-0.01; it must be a finite number above 0, in s"),
        ({"dt": np.nan}, "Simulation.dt=nan; it must be"),
        ({"limit_stiffness": -1.0}, "Simulation.limit_stiffness=-1; it must be"),
        ({"drive": Drive(jnp.zeros(2), -jnp.ones(2))}, r"Drive.damping=-1 at \[0\]; it must be"),
        ({"drive": Drive(jnp.zeros(3), jnp.zeros(2))}, r"Drive.stiffness has shape \[3\]; it must"),
    ],
)
def test_a_spec_that_cannot_be_is_named(change, message):
    good = simulation(arm(2), 0.01)
    for name, call in (("init", Simulation.init), ("step", lambda s: s.step(good.init()))):
        with pytest.raises(ValueError, match=f"{name}: {message}"):
            call(dataclasses.replace(good, **change))


@pytest.mark.slow
def test_wrong_states_are_named():
    tree = assemble([Link(-1, "free", inertia=np.eye(3))])
    spec = simulation(tree, 0.01)
    begin = spec.init()
    for state, message in (
        (State(jnp.zeros(7), begin.v), "quaternion of zeros at row 3; it must have a length"),
        (State(begin.q.at[0].set(jnp.nan), begin.v), r"step: q=nan at \[0\]; it must be"),
        (State(begin.q, begin.q), r"step: v has shape \(7,\); its last axis must be 6"),
    ):
        with pytest.raises(ValueError, match=message):
            spec.step(state)
    listed = spec.step(State(begin.q.tolist(), begin.v.tolist()), force=[0, 0, 0, 0, 0, 1])
    np.testing.assert_allclose(listed.v[5], 0.01)


def test_no_motors():
    np.testing.assert_array_equal(passive(arm(3)).stiffness, 0)
