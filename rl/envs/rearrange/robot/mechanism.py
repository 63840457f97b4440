"""Fetch as a mechanism of `jaxgpu.physics.rigid`, among boxes, with one object to handle.

The MJCF text uses the constants in `fetch`. The base is a planar joint (x, y, yaw), the torso
lifts, the arm has its seven joints, each finger slides; the head is fixed in its rest pose. Masses
are those of the published description, distributed over the capsules around the links as solid
bodies; gravity compensation carries the weights, as on the robot. The surroundings are boxes of the
world, whose positions and sizes are set before each step: the base collides with `BASE_SLOTS` of
them, torso, head and arm with `LIMB_SLOTS`, the object with `OBJECT_SLOTS`. The floor is a plane,
so that objects cannot fall through. The base, an upright cylinder that stays on the floor, is a
ball among boxes without top and bottom.
"""

from typing import Any

import numpy as np

from .fetch import (
    ARM,
    BASE_HEIGHT,
    BASE_RADIUS,
    CAPSULES,
    GRIPPER,
    HEAD_DOWN,
    LIFT,
    PAN,
    TILT,
    TORSO,
)

BASE_SLOTS, LIMB_SLOTS, OBJECT_SLOTS = 6, 12, 4  # boxes of the world that each can touch at a time
# Masses in kg, from the published description.
MASSES = {
    "base": 70.13,
    "torso fixed": 13.28,
    "torso": 10.78,
    "pan": 2.26,
    "tilt": 0.91,
    "shoulder pan": 2.56,
    "shoulder lift": 2.66,
    "upper-arm roll": 2.33,
    "elbow flex": 2.13,
    "forearm roll": 1.66,
    "wrist flex": 1.73,
    "wrist roll": 0.135,
    "gripper": 1.52,
}
EFFORTS = 33.8, 131.8, 76.9, 66.2, 29.4, 25.7, 7.4  # N m, of the arm's actuators
TORSO_EFFORT, FINGER_EFFORT = 450.0, 60.0  # N
# Our servo gains: a single joint has about 15 rad/s natural frequency and does not overshoot.
STIFFNESS = 1000.0, 1000.0, 500.0, 500.0, 200.0, 200.0, 50.0  # N m/rad
DAMPING = 120.0, 120.0, 50.0, 50.0, 15.0, 15.0, 4.0  # N m s/rad
WHEEL_FORCE, WHEEL_TORQUE = 500.0, 200.0  # N and N m, limits of all wheels together
# Half sizes of a finger, m, and of the palm, a box that replaces its wider capsule.
FINGER, PALM, PALM_AT = (0.030, 0.007, 0.013), (0.0625, 0.0625, 0.032), -0.0975
MAX_OPENING = 0.05  # m, maximum opening of each finger
FINGER_MASS = 0.08  # kg
DIRECTIONS = ("1 0 0", "0 1 0", "0 0 1")


def mjcf_text() -> str:
    """Return the MJCF text of robot, boxes and object.

    >>> "shoulder pan" in mjcf_text()
    True
    """
    arm = ""
    for name, offset, axis, low, high in reversed(ARM):
        limits = f'range="{low} {high}"' if np.isfinite(high) else 'limited="false"'
        joint = f'<joint name="{name}" axis="{DIRECTIONS[axis]}" {limits} armature="0.1"/>'
        arm = _link(name, offset, joint, arm or _gripper())
    tilt = _link("tilt", TILT, "", "", f'euler="0 {HEAD_DOWN} 0"')
    lift = f'<joint name="torso" type="slide" axis="0 0 1" range="0 {LIFT}"/>'
    torso = _link("torso", (0.0, 0.0, 0.0), lift, _link("pan", PAN, "", tilt) + arm)
    return f"""<mujoco>
<compiler angle="radian" autolimits="true"/>
<option timestep="0.005" integrator="implicitfast" cone="elliptic" impratio="10"/>
<default>
  <geom solref="0.012 1" solimp="0.95 0.99 0.001" friction="1 0.005 0.0001" contype="0"
    conaffinity="0"/>
</default>
<worldbody>
<geom name="floor" type="plane" size="1 1 1" contype="5"/>
{_world_boxes("base", BASE_SLOTS, 8)}
{_world_boxes("limbs", LIMB_SLOTS, 1)}
{_world_boxes("thing", OBJECT_SLOTS, 4)}
<body name="base" gravcomp="1">
  <joint name="x" type="slide" axis="1 0 0"/>
  <joint name="y" type="slide" axis="0 1 0"/>
  <joint name="yaw" axis="0 0 1"/>
  <geom size="{BASE_RADIUS}" mass="{MASSES["base"]}" pos="0 0 {BASE_HEIGHT / 2}" conaffinity="8"/>
  {_link("torso fixed", TORSO, "", torso)}
</body>
<body name="thing" pos="2 0 0.5">
  <freejoint/>
  <geom name="thing" type="box" size="0.03 0.03 0.03" mass="0.1" contype="2" conaffinity="4"/>
</body>
</worldbody>
<actuator>{_actuators()}</actuator>
</mujoco>"""


def _world_boxes(name: str, count: int, bits: int) -> str:
    """Return boxes of the world, placed out of reach until they are set."""
    box = '<geom name="{} {}" type="box" size="0.1 0.1 0.1" pos="0 0 -1000" contype="{}"/>'
    return "\n".join(box.format(name, i, bits) for i in range(count))


def _link(name: str, offset: Any, joint: str, inner: str, turned: str = "") -> str:
    """Return a link with its joint, the capsules around it, and its child bodies."""
    own = [c for c in CAPSULES if c.frame == name]
    place = " ".join(f"{x}" for x in offset)
    shapes = "".join(_capsule(c, MASSES[name]) for c in own)
    return f"""<body name="{name}" pos="{place}" gravcomp="1" {turned}>{joint}{shapes}
{inner}</body>"""


def _capsule(c: Any, mass: float) -> str:
    """Return a capsule that collides with the robot's boxes; one without length is a sphere."""
    if c.start == c.end:
        place = " ".join(f"{x}" for x in c.start)
        return f'<geom size="{c.radius}" pos="{place}" mass="{mass}" conaffinity="1"/>'
    ends = " ".join(f"{x}" for x in (*c.start, *c.end))
    return f'<geom type="capsule" size="{c.radius}" fromto="{ends}" mass="{mass}" conaffinity="1"/>'


def _gripper() -> str:
    """Return the gripper, which the object can touch, and two fingers that slide sideways."""
    sizes = " ".join(f"{x}" for x in PALM)
    palm = f"""<geom type="box" size="{sizes}" pos="{PALM_AT} 0 0" mass="{MASSES["gripper"]}"
  conaffinity="3"/>"""
    fingers = "".join(
        f"""<body name="{name}" gravcomp="1">
<joint name="{name}" type="slide" axis="0 {side} 0" range="0 {MAX_OPENING}" armature="0.2"/>
<geom name="{name}" type="box" size="{FINGER[0]} {FINGER[1]} {FINGER[2]}" mass="{FINGER_MASS}"
  pos="0 {side * FINGER[1]} 0" conaffinity="3"/></body>"""
        for name, side in (("left finger", 1), ("right finger", -1))
    )
    place = " ".join(f"{x}" for x in GRIPPER)
    return f'<body name="gripper" pos="{place}" gravcomp="1">{palm}{fingers}</body>'


def _actuators() -> str:
    """Return the servos: velocity actuators for the base, position actuators otherwise."""
    base = "".join(
        f'<velocity name="{name}" joint="{name}" kv="{kv}" forcerange="{-most} {most}"/>'
        for name, kv, most in (
            ("x", 2000, WHEEL_FORCE),
            ("y", 2000, WHEEL_FORCE),
            ("yaw", 400, WHEEL_TORQUE),
        )
    )
    servo = '<position name="{}" joint="{}" kp="{}" kv="{}" forcerange="{} {}"/>'
    rows = [("torso", 20_000.0, 2_000.0, TORSO_EFFORT)]
    rows += [(j[0], *gains) for j, gains in zip(ARM, zip(STIFFNESS, DAMPING, EFFORTS))]
    rows += [(f"{side} finger", 1000.0, 60.0, FINGER_EFFORT) for side in ("left", "right")]
    return base + "".join(servo.format(n, n, kp, kv, -f, f) for n, kp, kv, f in rows)
