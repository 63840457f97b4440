"""The arms: lengths of STAR's links, and positions within the range of the tasks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.rl.envs.surgical.arms import ECM, PSM, STAR
from jaxgpu.rl.envs.surgical.kinematics import forward_kinematics, frame_origins


def test_star_reaches_down_and_its_links_have_their_lengths(x64):
    """Upright, its height is 0.36 + 0.42 + 0.40 + 0.126 + 0.30 m; at work its tool points down."""
    few = {"xla_backend_optimization_level": 0}
    place = lambda q: (*forward_kinematics(STAR, q), frame_origins(STAR, q))
    tip = jax.jit(place, compiler_options=few)
    np.testing.assert_allclose(tip(np.zeros(7))[0], [0, 0, 1.606], atol=1e-14)
    _, R, _ = tip((np.array(STAR.working_lower) + STAR.working_upper) / 2)
    np.testing.assert_allclose(R[:, 2], [0, 0, -1], atol=1e-14)
    part = np.random.default_rng(0).random(7)
    q = np.array(STAR.lower) + (np.array(STAR.upper) - np.array(STAR.lower)) * part
    end, _, points = tip(q)
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    np.testing.assert_allclose(lengths, [0, 0.42, 0, 0.4, 0, 0.126, 0.3], atol=1e-14)
    np.testing.assert_allclose(points[-1], end)


@pytest.mark.parametrize("arm", [PSM, ECM, STAR], ids=["psm", "ecm", "star"])
def test_a_step_is_a_share_of_the_working_range_which_it_does_not_leave(arm):
    low, high = np.float32(arm.working_lower), np.float32(arm.working_upper)
    assert (np.array(arm.lower) <= low).all() and (high <= np.array(arm.upper)).all()
    part = np.linspace(-1, 1, arm.joints, dtype=np.float32)

    @jax.jit
    def step_shares(middle):
        after = arm.step_joints(middle, jnp.asarray(part), 0.1)
        far = arm.step_joints(middle, jnp.asarray(5 + part), 0.9)
        return arm.normalize(after), far, arm.normalize(jnp.asarray(low))

    after, far, least = step_shares((low + high) / 2)
    np.testing.assert_allclose(after, 0.2 * part, atol=2e-6)
    np.testing.assert_allclose(far, high, rtol=1e-6)
    np.testing.assert_allclose(least, -1, atol=1e-6)


@pytest.mark.parametrize("arm", [PSM, ECM], ids=["psm", "ecm"])
def test_the_tasks_work_in_half_of_the_limits_and_from_50_to_200_mm_of_insertion(arm):
    for row in zip(
        arm.prismatic, arm.lower, arm.upper, arm.working_lower, arm.working_upper, strict=True
    ):
        slides, *limits, low, high = row
        want = [0.05, 0.2] if slides else np.array(limits) / 2
        np.testing.assert_allclose([low, high], want, rtol=1e-12)


def test_limits_are_those_of_the_machines():
    """PSM: 91, 53, 260, 80 and 80 degrees, 240 mm; ECM: 90, -44 to 65 and 89 degrees, 255 mm."""
    turns = np.array([0, 1, 3, 4, 5])
    np.testing.assert_allclose(np.rad2deg(PSM.upper)[turns], [91, 53, 260, 80, 80], atol=0.05)
    np.testing.assert_allclose(np.array(PSM.lower)[turns], -np.array(PSM.upper)[turns])
    turns = np.array([0, 1, 3])
    np.testing.assert_allclose(np.rad2deg(ECM.upper)[turns], [90, 65, 89], atol=0.1)
    np.testing.assert_allclose(np.rad2deg(ECM.lower)[turns], [-90, -44, -89], atol=0.1)
    assert (PSM.lower[2], PSM.upper[2], ECM.lower[2], ECM.upper[2]) == (0, 0.24, 0, 0.255)
    reach = np.array([170, 120, 170, 120, 170, 120, 175])  # KUKA LBR Med 14
    np.testing.assert_allclose(np.rad2deg(STAR.upper), reach)
    np.testing.assert_allclose(np.rad2deg(STAR.lower), -reach)
    np.testing.assert_allclose(np.array(STAR.working_upper) - STAR.working_lower, 0.6)


@pytest.mark.parametrize("arm, off", [(PSM, 0.4162 - 0.4318), (ECM, 0.3829 - 0.3822)])
def test_the_shaft_passes_through_the_remote_centre(x64, arm, off):
    """The distance of its end from the origin is the insertion, for any yaw and pitch."""
    origins = jax.jit(lambda q: frame_origins(arm, q))
    for yaw, pitch, insertion in ((0.7, -0.4, 0.12), (-0.5, 0.6, 0.2)):
        points = np.asarray(origins(np.array([yaw, pitch, insertion, *[0.3] * (arm.joints - 3)])))
        np.testing.assert_allclose(points[:2], 0, atol=1e-15)
        np.testing.assert_allclose(np.linalg.norm(points[3]), insertion + off, rtol=1e-12)
    links = np.linalg.norm(np.diff(points[3:], axis=0), axis=1)
    wrist = [0, 0.0091, 0.0102] if arm is PSM else [0]
    np.testing.assert_allclose(links, wrist, atol=1e-14)
