"""Arms with masses: the kinematics of those without, and the published dynamics of the KUKA arm."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.geometry import rotations
from jaxgpu.physics import rigid
from jaxgpu.rl.envs.surgical import dynamics
from jaxgpu.rl.envs.surgical.arms import ECM, PSM, STAR
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics

FEW = {"xla_backend_optimization_level": 0}  # programs that run once
MASSES = {
    PSM: dynamics.PSM_DYNAMICS,
    ECM: dynamics.ECM_DYNAMICS,
    STAR: dynamics.STAR_DYNAMICS,
}
ARMS = pytest.mark.parametrize("arm", [PSM, ECM, STAR], ids=["psm", "ecm", "star"])
UPRIGHT = {  # iiwa14.xml of the menagerie, upright: heights of the joints and centres of mass, m
    "mass": [5.76, 6.35, 3.5, 3.5, 3.5, 1.8, 1.2],
    "joint": [0.1575, 0.36, 0.5645, 0.78, 0.9645, 1.18, 1.261],
    "com": [
        (0, -0.03, 0.2775),
        (-0.0003, 0.042, 0.419),
        (0, 0.03, 0.6945),
        (0, -0.034, 0.847),
        (-0.0001, -0.021, 1.0405),
        (0, 0.0004, 1.1806),
        (0, 0, 1.281),
    ],
    "inertia": [  # along the axes of each link, kg m^2
        (0.0333, 0.033, 0.0123),
        (0.0305, 0.0304, 0.011),
        (0.025, 0.0238, 0.0076),
        (0.017, 0.0164, 0.006),
        (0.01, 0.0087, 0.00449),
        (0.0049, 0.0047, 0.0036),
        (0.001, 0.001, 0.001),
    ],
}


@pytest.mark.slow
@ARMS
def test_links_hang_as_in_the_kinematics(x64, arm):
    robot = dynamics.mechanism(arm, MASSES[arm], 0.01, jnp.float64)
    low, high = np.array(arm.lower), np.array(arm.upper)
    q = low + (high - low) * np.random.default_rng(0).random((3, arm.joints))

    def link_poses(q):
        where = robot.poses(robot.init(q))
        turned = jnp.array(rotations.matrix(where.quat[:, -1]))
        return where.pos[:, -1], turned, *forward_kinematics(arm, q)

    for place, turned, tip, R in zip(
        *map(np.asarray, jax.jit(jax.vmap(link_poses), compiler_options=FEW)(q))
    ):
        np.testing.assert_allclose(turned, R, atol=1e-12)
        np.testing.assert_allclose(place + turned @ np.array(arm.tip), tip, atol=1e-12)


def test_the_upright_kuka_has_the_masses_where_the_menagerie_has_them(x64):
    """Compare the centre of mass in the world at q = 0, the mass and the inertia of every link."""
    robot = dynamics.mechanism(STAR, MASSES[STAR], 0.01, jnp.float64)
    where = jax.jit(lambda q: robot.poses(robot.init(q)), compiler_options=FEW)(np.zeros(7))
    np.testing.assert_allclose(where.centre.T[1:], UPRIGHT["com"], atol=1e-12)
    np.testing.assert_allclose(robot.bodies.mass[1:], UPRIGHT["mass"], rtol=1e-12)
    np.testing.assert_array_equal(MASSES[STAR].inertia, UPRIGHT["inertia"])


def test_the_third_joint_of_the_upright_kuka_feels_the_inertia_beyond_it(x64):
    robot = dynamics.mechanism(STAR, MASSES[STAR], 0.01, jnp.float64)
    # Sum the inertia of links 3 to 7 about the vertical axis, with its diagonal entries.
    along = np.array([0.0076, 0.0164, 0.00449, 0.0047, 0.001])
    off = np.square(np.array(UPRIGHT["com"])[2:, :2]).sum(1) * UPRIGHT["mass"][2:]
    found = jax.jit(lambda q: rigid.mass_matrix(robot, robot.init(q)), compiler_options=FEW)
    np.testing.assert_allclose(found(np.zeros(7))[2, 2], (along + off).sum(), rtol=1e-12)


@pytest.mark.slow
def test_servos_bring_the_links_to_their_targets_and_stay():
    """The arm, which has no gravity, rests on the target after three seconds, up to rounding."""
    arm = ECM
    robot = dynamics.mechanism(arm, MASSES[arm], 0.01)
    low, high = jnp.array(arm.working_lower), jnp.array(arm.working_upper)
    state = robot.init(low + 0.3 * (high - low))
    target = low + 0.6 * (high - low)
    move = lambda state, _: (robot.step(state, target), state.qpos)
    end, path = jax.jit(lambda s: jax.lax.scan(move, s, length=300))(state)
    np.testing.assert_allclose(end.qpos, target, atol=1e-4)
    assert np.abs(end.qvel).max() < 1e-3
    first = np.abs(path[5] - target) / np.abs(path[0] - target)
    assert (first[~np.array(arm.prismatic)] > 0.3).all()  # but not at once


@pytest.mark.slow
def test_masses_are_leaves_of_the_environment_and_of_its_mechanism(x64):
    """Twice the masses are twice the inertia of the joints, not counting the actuators."""
    env = rl.make("surgical/ecm-reach-dynamic")
    assert any(leaf is env.dynamics.mass for leaf in jax.tree.leaves(env))
    q = jnp.array([0.3, -0.2, 0.1, 0.5])
    base = env.dynamics

    def inertia(factor):
        heavy = replace(base, mass=factor * base.mass, inertia=factor * base.inertia)
        robot = dynamics.mechanism(ECM, heavy, 0.01, jnp.float64)
        return rigid.mass_matrix(robot, robot.init(q)) - jnp.diag(jnp.asarray(base.armature))

    inertias = lambda factors: (jax.vmap(inertia)(factors), jax.jacfwd(inertia)(1.0))
    (one, two), slope = jax.jit(inertias, compiler_options=FEW)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(two, 2 * one, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(slope, one, rtol=1e-10, atol=1e-14)


def test_masses_of_another_arm_are_refused():
    with pytest.raises(ValueError, match=r"dynamics.mass has shape \[7\]; it must be \[4\]"):
        dynamics.mechanism(ECM, dynamics.STAR_DYNAMICS, 0.01)
    with pytest.raises(ValueError, match=r"ArmDynamics.mass=-1 .*it must be a finite number of at"):
        bad = replace(dynamics.ECM_DYNAMICS, mass=np.array([-1.0, 0, 0, 0]))
        rl.make("surgical/ecm-reach-dynamic", dynamics=bad)
