"""Fetch's mechanism: masses, limits and actuators of the published description."""

import mujoco
import numpy as np
import pytest

from jaxgpu.rl.envs.rearrange.robot import mechanism

# Each row has a name, the mass in kg, the joint range (m or rad) and the effort (N or N m) from
# fetch_description/robots/fetch.urdf of fetch_ros. None means no value or no joint.
ENDLESS, NONE = (None, None), (None, None, None)
PUBLISHED = (
    ("base", 70.1294, *NONE),
    ("torso fixed", 13.2775, *NONE),
    ("torso", 10.7796, 0.0, 0.38615, 450.0),
    ("pan", 2.2556, *NONE),
    ("tilt", 0.9087, *NONE),
    ("shoulder pan", 2.5587, -1.6056, 1.6056, 33.82),
    ("shoulder lift", 2.6615, -1.221, 1.518, 131.76),
    ("upper-arm roll", 2.3311, *ENDLESS, 76.94),
    ("elbow flex", 2.1299, -2.251, 2.251, 66.18),
    ("forearm roll", 1.6563, *ENDLESS, 29.35),
    ("wrist flex", 1.725, -2.16, 2.16, 25.7),
    ("wrist roll", 0.1354, *ENDLESS, 7.36),
    ("gripper", 1.5175, *NONE),
    ("left finger", 0.0798, 0.0, 0.05, 60.0),
    ("right finger", 0.0798, 0.0, 0.05, 60.0),
)


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_string(mechanism.mjcf_text())


def test_masses_limits_and_efforts_are_the_published_ones(model):
    """The mechanism stores three digits of a mass and one decimal of an effort."""
    for name, mass, low, high, effort in PUBLISHED:
        np.testing.assert_allclose(model.body(name).mass, mass, rtol=3e-3, err_msg=name)
        if effort is not None:
            joint, motor = model.joint(name), model.actuator(name)
            np.testing.assert_allclose(motor.forcerange, [-effort, effort], rtol=6e-3, atol=0.05)
            assert motor.trnid[0] == joint.id and bool(joint.limited[0]) == (low is not None)
            if low is not None:
                np.testing.assert_allclose(joint.range, [low, high], rtol=1e-12)
    whole = model.body_subtreemass[model.body("base").id]
    np.testing.assert_allclose(whole, sum(row[1] for row in PUBLISHED), rtol=1e-3)


def test_servos_hold_a_position_and_wheels_a_velocity(model):
    """A servo's force is kp (ctrl - q) - kv v, a wheel's kv (ctrl - v), with positive gains."""
    for i in range(model.nu):
        gain, (offset, kp, kv) = model.actuator_gainprm[i, 0], model.actuator_biasprm[i, :3]
        wheel = model.actuator(i).name in ("x", "y", "yaw")
        assert gain > 0 and offset == 0 and kv < 0
        assert (kp, kv) == (0, -gain) if wheel else kp == -gain
