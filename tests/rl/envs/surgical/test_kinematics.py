"""Kinematics of arms against matrix products, closed forms, the remote centre and inverses."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_controller import slope_is_that_of_differences
from rl_matrices import tip_pose

from jaxgpu.rl.envs.surgical.arms import ECM, PSM, STAR
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics, inverse_kinematics

TIP = {arm: jax.jit(lambda q, arm=arm: forward_kinematics(arm, q)) for arm in (PSM, ECM, STAR)}


def random_joints(arm, seed):
    part = np.random.default_rng(seed).random(arm.joints)
    return np.array(arm.lower) + (np.array(arm.upper) - np.array(arm.lower)) * part


@pytest.mark.parametrize("arm", [PSM, ECM, STAR], ids=["psm", "ecm", "star"])
@pytest.mark.parametrize("seed", range(3))
def test_the_tip_is_where_matrices_put_it(x64, arm, seed):
    q = random_joints(arm, seed)
    for got, want in zip(TIP[arm](q), tip_pose(arm, q)):
        np.testing.assert_allclose(got, want, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_the_endoscope_turns_about_its_remote_centre(x64, seed):
    """The tip is depth times a direction set by yaw and pitch only; roll does not move it."""
    yaw, pitch, insertion, roll = q = random_joints(ECM, seed)
    depth = insertion - 0.3822 + 0.3829
    along = [np.sin(yaw) * np.cos(pitch), -np.sin(pitch), -np.cos(yaw) * np.cos(pitch)]
    tip, R = TIP[ECM](q)
    np.testing.assert_allclose(tip, depth * np.array(along), atol=1e-14)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)


def test_a_straight_wrist_continues_the_shaft(x64):
    """The tip is on the shaft, 19.3 mm beyond the wrist's pitch axis, if the wrist is at zero."""
    yaw, pitch, insertion = 0.4, -0.3, 0.12
    depth = insertion - 0.4318 + 0.4162 + 0.0091 + 0.0102
    along = [np.sin(yaw) * np.cos(pitch), -np.sin(pitch), -np.cos(yaw) * np.cos(pitch)]
    tip, _ = TIP[PSM](np.array([yaw, pitch, insertion, 1.1, 0.0, 0.0]))
    np.testing.assert_allclose(tip, depth * np.array(along), atol=1e-14)


@pytest.mark.slow
def test_conforms():
    f = TIP[ECM]
    conformance.check(f, jnp.array([0.1, -0.2, 0.1, 0.3]), differentiable=(0,), batched=(0,))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"q has shape \(5,\); this arm has 6 joints"):
        forward_kinematics(PSM, jnp.zeros(5))


def test_joints_are_those_that_the_tip_came_from(x64):
    """Sample the ranges of all joints, except the last 3 cm of a withdrawn insertion."""
    low, high = np.array(PSM.lower), np.array(PSM.upper)
    low[2], low[3], high[3] = 0.03, -3.1, 3.1  # a turn more of the roll is the same place
    q = low + (high - low) * np.random.default_rng(0).random((500, 6))
    back = jax.jit(jax.vmap(lambda q: inverse_kinematics(*TIP[PSM](q))))(q)
    np.testing.assert_allclose(back, q, atol=1e-11)


def test_derivatives_are_those_of_finite_differences(x64):
    tip, R = TIP[PSM](np.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3]))
    joints = lambda x: jnp.sum(jnp.sin(1.0 + jnp.arange(6.0)) * inverse_kinematics(x, R))
    # The error of differences over 1e-6 m is its square times (1 / 9 mm)^3, the wrist's third
    # derivative.
    slope_is_that_of_differences(joints, tip, 1e-5, 1e-6)


def test_inverse_kinematics_conforms():
    tip, R = TIP[PSM](np.float32([0.3, -0.2, 0.12, 0.5, 0.6, -0.3]))
    conformance.check_program(inverse_kinematics, tip, R)
    conformance.assert_exports(inverse_kinematics, tip, R)
