"""Kinematics of serial arms: the tip at given joints, and the PSM's joints for a given tip."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors

from .arms import PSM, Arm

_SHAFT_LENGTH = PSM.dh[2][3] + PSM.dh[3][3]  # length of the shaft at zero insertion, m
_LINK, _JAW = PSM.dh[5][1], PSM.tip[1]  # m


@explain_errors
def forward_kinematics(arm: Arm, q: Array) -> tuple[Array, Array]:
    """Return the tip's position [3] and the last frame's rotation [3, 3] at the joints `q` [J].

    Differentiable in `q`. About 60 multiplications per joint, on scalars: under `vmap` each is a
    contiguous row.

    >>> tip, _ = forward_kinematics(PSM, jnp.zeros(6).at[2].set(0.1))
    >>> round(float(tip[2]), 4)
    -0.1037
    """
    *_, (p, R) = _frames(arm, q)
    p = [p[i] + sum(R[i][k] * arm.tip[k] for k in range(3)) for i in range(3)]
    return jnp.stack(p), jnp.stack([jnp.stack(row) for row in R])


@explain_errors
def frame_origins(arm: Arm, q: Array) -> Array:
    """Return the origins of all frames, then the tip, [J + 1, 3] at the joints `q` [J].

    >>> frame_origins(PSM, jnp.zeros(6)).shape
    (7, 3)
    """
    ranges.check_finite("frame_origins", q=q, dh=arm.dh)
    origins = [jnp.stack(p) for p, _ in _frames(arm, q)]
    return jnp.stack([*origins, forward_kinematics(arm, q)[0]])


@explain_errors
def inverse_kinematics(tip: Array, R: Array) -> Array:
    """Return the PSM's joints [6] for the tip at `tip` [3], m, and the jaw's rotation `R` [3, 3].

    The columns of `R` are the opening direction of the jaws, forward, and their axis of rotation.
    Limits are ignored; the result is nan if the axis points to the origin.

    The wrist's pitch axis is on the shaft, and the shaft passes through the origin. So the jaw's
    plane determines the wrist, and the shaft is the line from the origin to it.

    >>> q = jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3])
    >>> tip, R = forward_kinematics(PSM, q)
    >>> bool(jnp.allclose(inverse_kinematics(tip, R), q, atol=1e-5))
    True
    """
    ranges.check_finite("inverse_kinematics", tip=tip, R=R)
    yaw_axis = R[:, 2]
    jaw = tip - _JAW * R[:, 1]
    along = jaw - jnp.sum(jaw * yaw_axis) * yaw_axis
    wrist = jaw - _LINK * along / jnp.sqrt(jnp.sum(along**2))
    depth = jnp.sqrt(jnp.sum(wrist**2))
    x, y, z = wrist / depth
    level = jnp.sqrt(x**2 + z**2)
    # The frame of the shaft without roll; its third column is the shaft.
    side = jnp.stack([-z / level, jnp.zeros_like(x), x / level])
    up = jnp.stack([-y * x / level, level, -y * z / level])
    shaft = jnp.stack([-up, -side, jnp.stack([x, y, z])])  # rows
    W = jnp.sum(shaft[:, :, None] * R[None], 1)
    tilt = jnp.sqrt(W[0, 2] ** 2 + W[1, 2] ** 2)
    wrists = [jnp.arctan2(W[1, 2], W[0, 2]), jnp.arctan2(-W[2, 2], tilt)]
    wrists.append(jnp.arctan2(W[2, 0], W[2, 1]))
    shoulder = [jnp.arctan2(x, -z), -jnp.arctan2(y, level), depth - _SHAFT_LENGTH]
    return jnp.stack([*shoulder, *wrists])


def _frames(arm: Arm, q: Array) -> Iterator[tuple[list, list]]:
    """Yield origin and rotation of each frame in turn."""
    if q.shape != (arm.joints,):
        raise ValueError(
            f"forward_kinematics: q has shape {q.shape}; this arm has {arm.joints} joints"
        )
    R = [[float(i == j) + 0 * q[0] for j in range(3)] for i in range(3)]
    p = [0 * q[0]] * 3
    for (alpha, a, theta, d), slides, value in zip(arm.dh, arm.prismatic, q):
        turn, shift = (theta, d + value) if slides else (theta + value, d)
        step, offset = _dh_transform(alpha, a, turn, shift)
        p = [p[i] + sum(R[i][k] * offset[k] for k in range(3)) for i in range(3)]
        R = [[sum(R[i][k] * step[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        yield p, R


def _dh_transform(
    alpha: float, a: float, theta: Array | float, d: Array | float
) -> tuple[list, list]:
    """Return rotation and offset of one row: about and along x, then about and along z."""
    ca, sa = _round_exact(np.cos(alpha)), _round_exact(np.sin(alpha))
    c, s = jnp.cos(theta), jnp.sin(theta)
    return [[c, -s, 0.0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]], [a, -sa * d, ca * d]


def _round_exact(x: float) -> float:
    """Round, so that right angles have the cosine 0, not 6e-17."""
    return float(np.round(x, 15))
