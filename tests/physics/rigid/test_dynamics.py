"""Dynamics against MuJoCo's C library, textbook equations, and the laws of mechanics."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from rigid_mechanisms import MUJOCO, arm, pendulum

from jaxgpu.physics.rigid import forward_dynamics, from_mjcf, inverse_dynamics, mass_matrix

TREES = range(len(MUJOCO["trees"]))
FORWARD, INVERSE, MASS = jax.jit(forward_dynamics), jax.jit(inverse_dynamics), jax.jit(mass_matrix)


def accelerations(tree, state, dtype):
    """The accelerations at a recorded state, with springs and damping as forces."""
    q, v, force = (jnp.asarray(np.array(state[name]), dtype) for name in ("q", "v", "force"))
    coordinate = np.concatenate(
        [
            start + np.arange(6 if joint == "free" else 1)
            for start, joint in zip(tree.starts, tree.joint)
        ]
    )
    spring = tree.stiffness * (tree.rest - q[coordinate])
    return FORWARD(tree, q, v, force + spring - tree.damping * v, jnp.zeros_like(v))


@pytest.mark.slow
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-10), ("float32", 2e-5)])
@pytest.mark.parametrize("i", TREES)
def test_accelerations_are_those_of_mujoco(x64, i, dtype, tolerance):
    """Random trees of hinges, slides and free bodies, several joints a body, welded bodies."""
    tree = from_mjcf(MUJOCO["trees"][i]["xml"], dtype=dtype)
    for state in MUJOCO["trees"][i]["states"]:
        a, want = np.asarray(accelerations(tree, state, dtype)), np.array(state["a"])
        assert a.dtype == dtype
        assert np.abs(a - want).max() < tolerance * np.abs(want).max()


@pytest.mark.parametrize("i", TREES)
def test_the_mass_matrix_is_that_of_mujoco(x64, i):
    record = MUJOCO["trees"][i]
    tree = from_mjcf(record["xml"], dtype=jnp.float64)
    M = MASS(tree, jnp.array(record["states"][0]["q"]))
    np.testing.assert_allclose(M, record["M"], rtol=0, atol=1e-12 * np.max(record["M"]))
    np.testing.assert_array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0


def test_a_double_pendulum_obeys_its_textbook_equations(x64):
    """Angles from the vertical a, b; masses m, n on rods k, l (Goldstein, chapter 1)."""
    for seed in range(5):
        (m, n), (k, l) = 10 ** np.random.default_rng(seed).uniform(-1, 1, (2, 2))
        q, v = np.random.default_rng(seed + 5).normal(size=(2, 2))
        a, b = q[0], q[0] + q[1]
        w, u = v[0], v[0] + v[1]
        both = n * k * l * np.cos(a - b)
        M = np.array([[(m + n) * k * k, both], [both, n * l * l]])
        rhs = [
            -n * k * l * u**2 * np.sin(a - b) - (m + n) * 9.81 * k * np.sin(a),
            n * k * l * w**2 * np.sin(a - b) - n * 9.81 * l * np.sin(b),
        ]
        want = np.linalg.solve(M, np.array(rhs))
        got = FORWARD(pendulum((m, n), (k, l)), q, v, jnp.zeros(2), jnp.zeros(2))
        want = np.array([want[0], want[1] - want[0]])
        # rounding, times the condition of the matrix
        atol = 10 * np.finfo(float).eps * np.linalg.cond(M) * np.abs(want).max()
        np.testing.assert_allclose(got, want, rtol=0, atol=atol)


@pytest.mark.slow
def test_forward_undoes_inverse(x64):
    tree = arm(dtype=jnp.float64)
    q, v, a = jax.random.normal(jax.random.key(3), (3, 5, 7))
    force = INVERSE(tree, q, v, a) + tree.armature[None] * a
    np.testing.assert_allclose(FORWARD(tree, q, v, force, jnp.zeros_like(v)), a, atol=1e-10)


def test_forces_do_the_work_that_the_energy_gains(x64):
    """d/dt (v M v / 2) = v (force - gravity's), for motion without armature: M' and Coriolis."""
    tree = arm(3, jnp.float64, armature=0.0)
    q, v, a = jax.random.normal(jax.random.key(4), (3, 3))
    energy = lambda q, v: 0.5 * v @ mass_matrix(tree, q) @ v
    power = jax.jit(lambda: jax.jvp(energy, (q, v), (v, a))[1])()
    held = INVERSE(tree, q, jnp.zeros(3), jnp.zeros(3))
    np.testing.assert_allclose(power, v @ (INVERSE(tree, q, v, a) - held), rtol=1e-11)


@pytest.mark.slow
def test_derivatives_are_those_of_finite_differences(x64):
    tree = arm(2, dtype=jnp.float64)
    q, v, force, implicit = jax.random.normal(jax.random.key(5), (4, 2))

    def f(q, v, force, implicit, mass, com, armature):
        changed = type(tree)(**{**vars(tree), "mass": mass, "com": com, "armature": armature})
        return forward_dynamics(changed, q, v, force, implicit**2)

    args = (q, v, force, implicit, tree.mass, tree.com, tree.armature)
    check_grads(jax.jit(f), args, order=1, modes=("fwd", "rev"), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_derivative_rule_is_the_derivative_of_the_plain_program(x64):
    from jaxgpu.physics.rigid import dynamics

    tree = arm(3, dtype=jnp.float64)
    args = tuple(jax.random.normal(jax.random.key(6), (4, 3)))
    plain = lambda *args: dynamics._forward(tree, *args)[0]
    ours = lambda *args: forward_dynamics(tree, *args)
    for want, got in zip(*(jax.jit(jax.jacrev(f, range(4)))(*args) for f in (plain, ours))):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10 * np.abs(want).max())


@pytest.mark.slow
@pytest.mark.parametrize("i", [0, 3])
def test_batch_axes_lead_and_mean_nothing(i):
    tree = from_mjcf(MUJOCO["trees"][i]["xml"])
    key = jax.random.key(7)
    q = jax.random.normal(key, (2, 3, tree.nq))
    v, f, d = jax.random.normal(key, (3, 2, 3, tree.nv))
    whole = FORWARD(tree, q, v, f, d**2)
    one = FORWARD(tree, q[1, 2], v[1, 2], f[1, 2], d[1, 2] ** 2)
    np.testing.assert_allclose(whole[1, 2], one, rtol=0, atol=2e-5 * np.abs(one).max())


@pytest.mark.slow
def test_conforms():
    tree = arm(2)
    args = tuple(jax.random.normal(jax.random.key(8), (4, 2)) ** 2)
    conformance.check(FORWARD, tree, *args, differentiable=(1, 2, 3, 4), batched=(1, 2, 3, 4))
    conformance.check(INVERSE, tree, *args[:3], differentiable=(0, 1, 2, 3), batched=(1, 2, 3))
    conformance.check(MASS, tree, args[0], differentiable=(0, 1), batched=(1,))


def test_wrong_shapes_are_named():
    tree = arm(3)
    good, bad = jnp.zeros(3), jnp.zeros(2)
    with pytest.raises(ValueError, match=r"q has shape \(2,\); its last axis must be 3"):
        forward_dynamics(tree, bad, good, good, good)
    with pytest.raises(ValueError, match=r"force has shape \(2,\)"):
        forward_dynamics(tree, good, good, bad, good)
