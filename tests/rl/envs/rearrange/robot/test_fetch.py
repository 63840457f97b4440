"""Fetch's kinematics against C MuJoCo's, and the shapes that enclose its links."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from jaxgpu.rl.envs.rearrange.robot import fetch
from jaxgpu.rl.envs.rearrange.robot.fetch import Joints, forward_kinematics

# Offsets, axes and types are from the published description (fetch.urdf), written as MJCF again.
# Bodies are named like the frames.
CHAIN = """
<mujoco><compiler angle="radian"/><worldbody><body name="base">
<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint axis="0 0 1"/>{geom}
<body name="torso fixed" pos="-0.086875 0 0.37743">{geom}</body>
<body name="torso" pos="-0.086875 0 0.37743"><joint type="slide" axis="0 0 1"/>{geom}
<body name="pan" pos="0.053125 0 0.603001"><joint axis="0 0 1"/>{geom}
<body name="tilt" pos="0.14253 0 0.057999"><joint axis="0 1 0"/>{geom}
<body name="camera" pos="0.055 0 0.0225">{geom}</body></body></body>
<body name="shoulder pan" pos="0.119525 0 0.34858"><joint axis="0 0 1"/>{geom}
<body name="shoulder lift" pos="0.117 0 0.06"><joint axis="0 1 0"/>{geom}
<body name="upper-arm roll" pos="0.219 0 0"><joint axis="1 0 0"/>{geom}
<body name="elbow flex" pos="0.133 0 0"><joint axis="0 1 0"/>{geom}
<body name="forearm roll" pos="0.197 0 0"><joint axis="1 0 0"/>{geom}
<body name="wrist flex" pos="0.1245 0 0"><joint axis="0 1 0"/>{geom}
<body name="wrist roll" pos="0.1385 0 0"><joint axis="1 0 0"/>{geom}
<body name="gripper" pos="0.16645 0 0">{geom}</body>
</body></body></body></body></body></body></body></body></body></worldbody></mujoco>
""".replace("{geom}", '<geom size=".01"/>')


def random_joints(count, dtype, seed=0):
    """Return joints anywhere within their limits, or within two turns if they are unlimited."""
    rng = np.random.default_rng(seed)
    low, high = (np.clip(x, -6.0, 6.0) for x in fetch.limits(dtype))
    parts = (
        rng.uniform((-5, -5, -3), (5, 5, 3), (count, 3)),
        rng.uniform(0, fetch.LIFT, count),
        rng.uniform((-1.57, -0.76), (1.57, 1.45), (count, 2)),
        rng.uniform(low, high, (count, 7)),
    )
    return Joints(*(jnp.asarray(part, dtype) for part in parts))


@pytest.mark.parametrize(
    "dtype, tolerance",
    [(np.float64, 1e-12), (np.float32, 1e-5)],
)
def test_frames_are_where_c_mujoco_puts_them(dtype, tolerance):
    """Errors are rounding: 20 products per frame of numbers up to 7, each to 1e-16 or 6e-8."""
    model = mujoco.MjModel.from_xml_string(CHAIN)
    data = mujoco.MjData(model)
    with jax.enable_x64(dtype == np.float64):
        joints = random_joints(50, dtype)
        few = {"xla_backend_optimization_level": 0}
        frames = jax.jit(forward_kinematics, compiler_options=few)(joints)
        assert frames.origin.dtype == dtype
    bodies = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name) for name in fetch.FRAMES]
    # MuJoCo orders joints depth first: torso, head, arm.
    parts = (joints.base, joints.torso[:, None], joints.head, joints.arm)
    for i, q in enumerate(np.concatenate([np.asarray(part, float) for part in parts], 1)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(frames.origin[i], data.xpos[bodies], atol=tolerance)
        turned = data.xmat[bodies].reshape(-1, 3, 3).transpose(0, 2, 1)  # axes are its columns
        np.testing.assert_allclose(frames.axes[i], turned, atol=tolerance)
