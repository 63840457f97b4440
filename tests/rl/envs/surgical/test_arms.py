"""Arms against products of matrices, the closed form of the shaft, and the remote centre."""

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxgpu.rl.envs.surgical.arms import ECM, PSM, STAR, place, posture

PLACE = {arm: jax.jit(lambda q, arm=arm: place(arm, q)) for arm in (PSM, ECM, STAR)}


def random_joints(arm, seed):
    part = np.random.default_rng(seed).random(arm.joints)
    return np.array(arm.lower) + (np.array(arm.upper) - np.array(arm.lower)) * part


def by_matrices(arm, q):
    T = np.eye(4)
    for (alpha, a, theta, d), sliding, value in zip(arm.rows, arm.sliding, q):
        theta, d = (theta, d + value) if sliding else (theta + value, d)
        for R, p in (
            (Rotation.from_euler("x", alpha), (a, 0, 0)),
            (Rotation.from_euler("z", theta), (0, 0, d)),
        ):
            step = np.eye(4)
            step[:3, :3], step[:3, 3] = R.as_matrix(), p
            T = T @ step
    return T[:3, 3] + T[:3, :3] @ arm.tip, T[:3, :3]


@pytest.mark.parametrize("arm", [PSM, ECM, STAR], ids=["psm", "ecm", "star"])
@pytest.mark.parametrize("seed", range(3))
def test_the_tip_is_where_matrices_put_it(x64, arm, seed):
    q = random_joints(arm, seed)
    for got, want in zip(PLACE[arm](jnp.asarray(q)), by_matrices(arm, q)):
        np.testing.assert_allclose(got, want, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_the_endoscope_turns_about_its_remote_centre(x64, seed):
    """Depth times a direction set by yaw and pitch alone; roll does not move the tip."""
    yaw, pitch, insertion, roll = q = random_joints(ECM, seed)
    depth = insertion - 0.3822 + 0.3829
    along = [np.sin(yaw) * np.cos(pitch), -np.sin(pitch), -np.cos(yaw) * np.cos(pitch)]
    tip, R = PLACE[ECM](jnp.asarray(q))
    np.testing.assert_allclose(tip, depth * np.array(along), atol=1e-14)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)


def test_a_straight_wrist_continues_the_shaft(x64):
    """With the wrist at zero the tip lies on the shaft, 19.3 mm beyond the wrist's pitch axis."""
    yaw, pitch, insertion = 0.4, -0.3, 0.12
    depth = insertion - 0.4318 + 0.4162 + 0.0091 + 0.0102
    along = [np.sin(yaw) * np.cos(pitch), -np.sin(pitch), -np.cos(yaw) * np.cos(pitch)]
    tip, _ = PLACE[PSM](jnp.array([yaw, pitch, insertion, 1.1, 0.0, 0.0]))
    np.testing.assert_allclose(tip, depth * np.array(along), atol=1e-14)


def test_star_reaches_down_and_its_links_have_their_lengths(x64):
    """Upright it is 0.36 + 0.42 + 0.40 + 0.126 + 0.30 m high; at work its tool points down."""
    np.testing.assert_allclose(PLACE[STAR](jnp.zeros(7))[0], [0, 0, 1.606], atol=1e-14)
    q = (jnp.array(STAR.low) + jnp.array(STAR.high)) / 2
    tip, R = PLACE[STAR](q)
    np.testing.assert_allclose(R[:, 2], [0, 0, -1], atol=1e-14)
    points = jax.jit(lambda q: posture(STAR, q))(jnp.array(random_joints(STAR, 0)))
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    np.testing.assert_allclose(lengths, [0, 0.42, 0, 0.4, 0, 0.126, 0.3], atol=1e-14)
    np.testing.assert_allclose(points[-1], PLACE[STAR](jnp.array(random_joints(STAR, 0)))[0])


def test_conforms():
    f = PLACE[ECM]
    conformance.check(f, jnp.array([0.1, -0.2, 0.1, 0.3]), differentiable=(0,), batched=(0,))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"q has shape \(5,\); this arm has 6 joints"):
        place(PSM, jnp.zeros(5))
