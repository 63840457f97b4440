"""Kinematics of serial arms: where the tip is at given joints, and the PSM's joints for a tip."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import explained

from .arms import PSM, Arm

_SHORT = PSM.dh[2][3] + PSM.dh[3][3]  # of the shaft less the insertion, m
_LINK, _JAW = PSM.dh[5][1], PSM.tip[1]  # m


@explained
def forward_kinematics(arm: Arm, q: Array) -> tuple[Array, Array]:
    """The position [3] of the tip and rotation [3, 3] of the last frame at the joints `q` [J].

    Differentiable in `q`. About 60 multiplications a joint, on single numbers: under `vmap` every
    one of them is a contiguous row.

    >>> tip, _ = forward_kinematics(PSM, jnp.zeros(6).at[2].set(0.1))
    >>> round(float(tip[2]), 4)
    -0.1037
    """
    *_, (p, R) = _frames(arm, q)
    p = [p[i] + sum(R[i][k] * arm.tip[k] for k in range(3)) for i in range(3)]
    return jnp.stack(p), jnp.stack([jnp.stack(row) for row in R])


@explained
def frame_origins(arm: Arm, q: Array) -> Array:
    """The origins of all frames, then the tip, [J + 1, 3] at the joints `q` [J]: for a picture.

    >>> frame_origins(PSM, jnp.zeros(6)).shape
    (7, 3)
    """
    ranges.finite("frame_origins", q=q, dh=arm.dh)
    origins = [jnp.stack(p) for p, _ in _frames(arm, q)]
    return jnp.stack([*origins, forward_kinematics(arm, q)[0]])


@explained
def inverse_kinematics(tip: Array, R: Array) -> Array:
    """The joints [6] at which the PSM has its tip at `tip` [3], m, its jaw turned by `R` [3, 3].

    The columns of `R` are where the jaws part, ahead, and the axis on which they turn. Limits are
    not looked at; nan where the axis points to the origin.

    The wrist's pitch axis lies on the shaft, and the shaft goes through the origin; the jaw's plane
    then fixes the wrist, and the shaft is the line from the origin to it.

    >>> q = jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3])
    >>> tip, R = forward_kinematics(PSM, q)
    >>> bool(jnp.allclose(inverse_kinematics(tip, R), q, atol=1e-5))
    True
    """
    ranges.finite("inverse_kinematics", tip=tip, R=R)
    yaw_axis = R[:, 2]
    jaw = tip - _JAW * R[:, 1]
    along = jaw - jnp.sum(jaw * yaw_axis) * yaw_axis
    wrist = jaw - _LINK * along / jnp.sqrt(jnp.sum(along**2))
    depth = jnp.sqrt(jnp.sum(wrist**2))
    x, y, z = wrist / depth
    level = jnp.sqrt(x**2 + z**2)
    # the frame of the shaft without roll: its third column is the shaft
    side = jnp.stack([-z / level, jnp.zeros_like(x), x / level])
    up = jnp.stack([-y * x / level, level, -y * z / level])
    shaft = jnp.stack([-up, -side, jnp.stack([x, y, z])])  # rows
    W = jnp.sum(shaft[:, :, None] * R[None], 1)
    tilt = jnp.sqrt(W[0, 2] ** 2 + W[1, 2] ** 2)
    wrists = [jnp.arctan2(W[1, 2], W[0, 2]), jnp.arctan2(-W[2, 2], tilt)]
    wrists.append(jnp.arctan2(W[2, 0], W[2, 1]))
    shoulder = [jnp.arctan2(x, -z), -jnp.arctan2(y, level), depth - _SHORT]
    return jnp.stack([*shoulder, *wrists])


def _frames(arm: Arm, q: Array) -> Iterator[tuple[list, list]]:
    """Origin and rotation of one frame after the other."""
    if q.shape != (arm.joints,):
        raise ValueError(
            f"forward_kinematics: q has shape {q.shape}; this arm has {arm.joints} joints"
        )
    R = [[float(i == j) + 0 * q[0] for j in range(3)] for i in range(3)]
    p = [0 * q[0]] * 3
    for (alpha, a, theta, d), slides, value in zip(arm.dh, arm.prismatic, q):
        turn, shift = (theta, d + value) if slides else (theta + value, d)
        step, offset = _row(alpha, a, turn, shift)
        p = [p[i] + sum(R[i][k] * offset[k] for k in range(3)) for i in range(3)]
        R = [[sum(R[i][k] * step[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        yield p, R


def _row(alpha: float, a: float, theta: Array | float, d: Array | float) -> tuple[list, list]:
    """Rotation and shift of one row: about and along x, then about and along z."""
    ca, sa = _exact(np.cos(alpha)), _exact(np.sin(alpha))
    c, s = jnp.cos(theta), jnp.sin(theta)
    return [[c, -s, 0.0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]], [a, -sa * d, ca * d]


def _exact(x: float) -> float:
    """Right angles have the cosine 0, not 6e-17."""
    return float(np.round(x, 15))
