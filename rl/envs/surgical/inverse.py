"""Joints of the PSM for a place of its tip: closed form, since its shaft passes a fixed point.

The wrist's pitch axis lies on the shaft, and the shaft goes through the origin; the jaw's plane
then fixes the wrist, and the shaft is the line from the origin to it.
"""

import jax.numpy as jnp
from jax import Array

from .arms import PSM

_SHORT = PSM.rows[2][3] + PSM.rows[3][3]  # of the shaft less the insertion, m
_LINK, _JAW = PSM.rows[5][1], PSM.tip[1]  # m


def joints(tip: Array, R: Array) -> Array:
    """Joints [6] at which the PSM has its tip at `tip` [3], m, and its jaw turned by `R` [3, 3].

    The columns of `R` are where the jaws part, ahead, and the axis on which they turn. Limits are
    not looked at; nan where the axis points to the origin.

    >>> from jaxgpu.rl.envs.surgical.arms import place
    >>> q = jnp.array([0.3, -0.2, 0.12, 0.5, 0.6, -0.3])
    >>> bool(jnp.allclose(joints(*place(PSM, q)), q, atol=1e-5))
    True
    """
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
