"""Kinematics of the mobile manipulator Fetch, from its published description.

The base drives in the plane, the torso lifts, the head pans and tilts, the arm has seven joints. No
offset between two frames contains a rotation, and each joint turns about an axis of its own frame.
So positions and axes of all frames follow in closed form: a rotation about x mixes the frame's axes
y and z, and so on. Lengths are in m, angles in rad. x points forward, y left, z up, and the origin
of the base is on the floor between its wheels. Constants: Fetch Robotics, fetch_ros,
`fetch_description`; the capsules enclose the convex hulls of its meshes.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.fields import pytree

# Joints of the arm: offset of the frame in its parent's, axis of rotation, and limits. Roll joints
# have no limits.
ARM: tuple[tuple[str, tuple[float, float, float], int, float, float], ...] = (
    ("shoulder pan", (0.119525, 0.0, 0.34858), 2, -1.6056, 1.6056),
    ("shoulder lift", (0.117, 0.0, 0.06), 1, -1.221, 1.518),
    ("upper-arm roll", (0.219, 0.0, 0.0), 0, -np.inf, np.inf),
    ("elbow flex", (0.133, 0.0, 0.0), 1, -2.251, 2.251),
    ("forearm roll", (0.197, 0.0, 0.0), 0, -np.inf, np.inf),
    ("wrist flex", (0.1245, 0.0, 0.0), 1, -2.16, 2.16),
    ("wrist roll", (0.1385, 0.0, 0.0), 0, -np.inf, np.inf),
)
TORSO, PAN, TILT = (-0.086875, 0.0, 0.37743), (0.053125, 0.0, 0.603001), (0.14253, 0.0, 0.057999)
CAMERA, GRIPPER = (0.055, 0.0, 0.0225), (0.16645, 0.0, 0.0)
LIFT = 0.38615  # m, maximum lift of the torso
# Rest pose between tasks: the arm is folded in front of the raised torso.
REST = (-0.370, -1.032, 0.695, 0.955, -0.1, 2.077, 0.0)
HEAD_DOWN = 0.562  # rad, the tilt of the head at rest
FINGERS = 0.0218  # m, offset of the center of each finger from that of the open gripper
FRAMES = ("base", "torso fixed", "torso", "pan", "tilt", "camera", *(j[0] for j in ARM), "gripper")
BASE_RADIUS, BASE_HEIGHT = 0.29, 0.36  # m, of the upright cylinder that encloses the base


class Capsule(NamedTuple):
    """Capsule in a frame of the robot: all points within `radius` of a segment."""

    frame: str  # name in `FRAMES`
    start: tuple[float, float, float]  # m
    end: tuple[float, float, float]  # m
    radius: float  # m


CAPSULES = (
    Capsule("torso fixed", (-0.076, 0.0, -0.019), (-0.076, 0.0, 0.443), 0.161),
    Capsule("torso", (-0.025, 0.0, 0.035), (-0.025, 0.0, 0.492), 0.197),
    Capsule("pan", (0.013, 0.0, 0.058), (0.147, 0.0, 0.058), 0.148),
    Capsule("tilt", (0.0, -0.102, 0.0), (0.0, 0.102, 0.0), 0.065),
    Capsule("shoulder pan", (0.0, -0.011, 0.033), (0.117, -0.011, 0.033), 0.103),
    Capsule("shoulder lift", (0.0, 0.021, 0.0), (0.168, 0.021, 0.0), 0.073),
    Capsule("upper-arm roll", (-0.048, -0.018, 0.0), (0.133, -0.018, 0.0), 0.070),
    Capsule("elbow flex", (0.0, 0.018, 0.0), (0.163, 0.018, 0.0), 0.070),
    Capsule("forearm roll", (-0.031, -0.025, 0.0), (0.126, -0.025, 0.0), 0.077),
    Capsule("wrist flex", (-0.003, 0.005, 0.0), (0.062, 0.005, 0.0), 0.077),
    Capsule("wrist roll", (-0.009, 0.0, 0.0), (-0.009, 0.0, 0.0), 0.054),
    Capsule("gripper", (-0.138, 0.0, 0.0), (-0.047, 0.0, 0.0), 0.068),
    Capsule("gripper", (-0.03, FINGERS, 0.0), (0.03, FINGERS, 0.0), 0.0148),
    Capsule("gripper", (-0.03, -FINGERS, 0.0), (0.03, -FINGERS, 0.0), 0.0148),
)


@pytree
class Joints:
    """Positions of all joints; leading axes are batch axes."""

    base: Array  # [..., 3] x and y in m, and yaw in rad
    torso: Array  # [...] lift, m
    head: Array  # [..., 2] pan and tilt, rad
    arm: Array  # [..., 7] rad


@pytree
class Frames:
    """Poses of the frames in `FRAMES`."""

    origin: Array  # [..., 14, 3] m
    axes: Array  # [..., 14, 3, 3] the frame's x, y and z in the world, one per row


@explain_errors
def limits(dtype: Any) -> tuple[Array, Array]:
    """Return lower and upper limits of the arm's joints, [7] each, rad, infinite for roll joints.

    >>> [round(float(x), 3) for x in limits(jnp.float32)[1][:2]]
    [1.606, 1.518]
    """
    low, high = ([joint[i] for joint in ARM] for i in (3, 4))
    return jnp.asarray(low, dtype), jnp.asarray(high, dtype)


@explain_errors
def forward_kinematics(joints: Joints) -> Frames:
    """Return positions and axes of all frames, [..., 14, 3] and [..., 14, 3, 3].

    It takes about 300 operations.

    >>> rest = Joints(jnp.zeros(3), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> frames = forward_kinematics(rest)
    >>> [round(float(x), 3) for x in frames.origin[-1]]  # the gripper, the arm stretched ahead
    [1.128, 0.0, 1.172]
    """
    x, y, yaw = (joints.base[..., i] for i in range(3))
    zero = jnp.zeros_like(x)
    upright = jnp.broadcast_to(jnp.eye(3, dtype=x.dtype), (*x.shape, 3, 3))
    base = jnp.stack([x, y, zero], -1), _rotate_axes(upright, 2, yaw)
    fixed = _offset_frame(base, TORSO)
    torso = fixed[0] + joints.torso[..., None] * base[1][..., 2, :], base[1]
    pan = _offset_frame(torso, PAN, 2, joints.head[..., 0])
    tilt = _offset_frame(pan, TILT, 1, joints.head[..., 1])
    chain = [torso]
    for i, (_, offset, axis, _, _) in enumerate(ARM):
        chain.append(_offset_frame(chain[-1], offset, axis, joints.arm[..., i]))
    gripper = _offset_frame(chain[-1], GRIPPER)
    found = [base, fixed, torso, pan, tilt, _offset_frame(tilt, CAMERA), *chain[1:], gripper]
    origins, axes = zip(*found)
    return Frames(origin=jnp.stack(origins, -2), axes=jnp.stack(axes, -3))


def place_frames(frames: Frames, base: Array) -> Frames:
    """Move the frames [..., 14] of a robot at the origin to the base pose `base` [..., 3].

    >>> at = lambda base: Joints(jnp.asarray(base), jnp.float32(0.1), jnp.zeros(2), jnp.ones(7))
    >>> there = place_frames(forward_kinematics(at((0.0, 0.0, 0.0))), jnp.array([1.0, 2.0, 0.5]))
    >>> want = forward_kinematics(at((1.0, 2.0, 0.5)))
    >>> bool(jnp.allclose(there.origin, want.origin, atol=1e-6))
    True
    """
    c, s = jnp.cos(base[..., 2]), jnp.sin(base[..., 2])

    def rotate(x: Array) -> Array:
        lead = (..., *(None,) * (x.ndim - c.ndim - 1))
        first, second = x[..., 0], x[..., 1]
        return jnp.stack(
            [c[lead] * first - s[lead] * second, s[lead] * first + c[lead] * second, x[..., 2]], -1
        )

    shift = jnp.concatenate([base[..., :2], jnp.zeros_like(base[..., :1])], -1)
    return Frames(origin=rotate(frames.origin) + shift[..., None, :], axes=rotate(frames.axes))


def capsules(frames: Frames) -> tuple[Array, Array, Array]:
    """Return capsules of all links but the base: starts, ends [..., 14, 3] and radii [14].

    >>> rest = Joints(jnp.zeros(3), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> [part.shape for part in capsules(forward_kinematics(rest))]
    [(14, 3), (14, 3), (14,)]
    """
    which = np.array([FRAMES.index(c.frame) for c in CAPSULES])
    dtype = frames.origin.dtype
    origin, axes = frames.origin[..., which, :], frames.axes[..., which, :, :]
    local = [jnp.asarray([c[i] for c in CAPSULES], dtype) for i in (1, 2)]
    start, end = (origin + to_world(axes, x) for x in local)
    return start, end, jnp.asarray([c.radius for c in CAPSULES], dtype)


def to_world(axes: Array, x: Array) -> Array:
    """Transform vectors [..., 3] from frames, whose axes are rows [..., 3, 3], to the world."""
    lead = (1,) * (axes.ndim - 1 - x.ndim)
    x = x.reshape(*lead, *x.shape)
    return sum(
        (x[..., i, None] * axes[..., i, :] for i in (1, 2)), x[..., 0, None] * axes[..., 0, :]
    )


def to_frame(axes: Array, x: Array) -> Array:
    """Transform world vectors [..., 3] into frames whose axes are rows [..., 3, 3]."""
    return jnp.sum(axes * x[..., None, :], -1)


def _offset_frame(
    link: tuple[Array, Array], offset: tuple[float, ...], axis: int = 0, angle: Array | None = None
) -> tuple[Array, Array]:
    """Return the frame at an offset in a link's frame, rotated about one of its axes."""
    origin, rows = link
    for i, shift in enumerate(offset):
        if shift:  # most offsets are along one axis
            origin = origin + shift * rows[..., i, :]
    return origin, rows if angle is None else _rotate_axes(rows, axis, angle)


def _rotate_axes(rows: Array, axis: int, angle: Array) -> Array:
    """Rotate axes [..., 3, 3] of a frame about one of them, which mixes the two others."""
    c, s = jnp.cos(angle)[..., None], jnp.sin(angle)[..., None]
    first, second = (axis + 1) % 3, (axis + 2) % 3
    turned = [rows[..., i, :] for i in range(3)]
    turned[first] = c * rows[..., first, :] + s * rows[..., second, :]
    turned[second] = c * rows[..., second, :] - s * rows[..., first, :]
    return jnp.stack(turned, -2)
