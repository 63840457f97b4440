"""Centring a target in the endoscope's image: it can be done, and its criterion of success."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_controller import play
from scipy.spatial.transform import Rotation

from jaxgpu import rl
from jaxgpu.rl.envs.surgical.arms import ECM
from jaxgpu.rl.envs.surgical.center import AHEAD

ENV = rl.make("surgical/ecm-centre")


@pytest.mark.slow
def test_damped_least_squares_centres_every_target():
    def residual(state, q):
        off = ENV.goal_in_camera(replace(state, q=q)) - jnp.array([0.0, 0.0, AHEAD])
        return jnp.append(off, 0.1 * (q[3] - state.goal_roll))

    _, seen = play(ENV, ECM, residual)
    assert seen["success"][:, 0].mean() < 0.1 and seen["success"][:, -1].mean() >= 0.95


def test_the_picture_that_was_asked_for_is_the_only_success():
    """Errors of 4 mm or 0.04 rad are accepted; 6 mm or 0.06 rad are too much."""
    yaw, pitch, insertion, roll = q = np.array([0.3, -0.2, 0.1, 0.4])
    along = np.array([np.sin(yaw) * np.cos(pitch), -np.sin(pitch), -np.cos(yaw) * np.cos(pitch)])
    target = along * (insertion - 0.3822 + 0.3829 + AHEAD)  # the closed form of the shaft
    state, _ = jax.jit(ENV.reset)(jax.random.key(0))
    step = jax.jit(ENV.step)
    state = replace(state, q=np.float32(q))
    side = Rotation.from_rotvec(0.5 * np.pi * along).apply(np.cross(along, [0.0, 1.0, 0.0]))
    cases = ((0, 0, 1), (0.004, 0, 1), (0.006, 0, 0), (0, 0.04, 1), (0, 0.06, 0))
    for shift, tilt, success in cases:
        where = (target + shift * side / np.linalg.norm(side)).astype(np.float32)
        asked = replace(state, goal=where, goal_roll=np.float32(roll + tilt))
        out = step(asked, np.zeros(4, np.float32), jax.random.key(0))
        assert out.info["success"] == bool(success)
        np.testing.assert_allclose(out.reward, success - 20 * shift - 0.2 * tilt, atol=1e-4)
