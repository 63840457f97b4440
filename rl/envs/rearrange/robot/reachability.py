"""Reachability of objects: arm postures of Fetch that reach a position without collision.

The base faces the object, and damped least squares move the grasp ball of the hand to the position,
pointing forward and down by each of `PITCHES`. A posture that arrives without penetrating a box
proves that the object can be grasped; a failed search proves nothing.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.physics.rigid.constraints.factor import solve

from . import contact, fetch
from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics
from .movement import SKIN, Load, max_depth

GRASP_OFFSET, GRASP_RADIUS = (
    0.03,
    0.015,
)  # m, offset of the grasp ball in front of the hand, and its radius
PITCHES = (0.35, 0.8, 1.3)  # rad, downward pitch of the hand
STEPS, MAX_STEP = 40, 0.4  # of the least squares; maximum joint change per iteration, rad
DAMPING, AIM_WEIGHT = 0.03, 0.2  # m; m per rad of the hand's direction
TOLERANCE = 3e-3  # m, distance at which a posture has arrived
NUM_BOXES = 128  # number of closest boxes that are tested


def grip_center(frames: Frames) -> Array:
    """Return the center of the hand's grasp ball, [3] m."""
    ahead = jnp.asarray([GRASP_OFFSET, 0.0, 0.0], frames.origin.dtype)
    return frames.origin[-1] + fetch.to_world(frames.axes[-1], ahead)


def joint_step(slope: Array, shift: Array, damping: float) -> Array:
    """Return joint increments [J] that shift values with Jacobian `slope` [K, J] by `shift` [K].

    Damped least squares, J^T (J J^T + damping^2)^-1 shift (Wampler 1986,
    doi:10.1109/TSMC.1986.289285).

    >>> slope = jnp.array([[2.0, 0.0, 0.0]])
    >>> joint_step(slope, jnp.array([1.0]), 0.0).tolist()
    [0.5, 0.0, 0.0]
    """
    square = jnp.sum(slope[:, None] * slope[None], -1)
    square = square + damping**2 * jnp.eye(len(slope), dtype=slope.dtype)
    return jnp.sum(slope * solve(square, shift)[:, None], 0)


@jax.jit
def can_reach(boxes: Array, bases: Array, place: Array) -> Array:
    """Return whether an arm posture reaches a position, for each of B base positions, [B] bool.

    Args:
        boxes: [R, 8] rows of `Boxes`, all obstacles.
        bases: [B, 2] m, positions of the base.
        place: [3] m, target of the center of the grasp ball.

    >>> floor = jnp.array([[0.0, 0.0, -0.05, 5.0, 5.0, 0.05, 1.0, 0.0]])
    >>> can_reach(floor, jnp.array([[-0.7, 0.0], [-2.0, 0.0]]), jnp.array([0.0, 0.0, 0.8])).tolist()
    [True, False]
    """
    nearest = jax.lax.top_k(
        -contact.point_distances(Boxes(boxes), place), min(NUM_BOXES, len(boxes))
    )[1]
    close = Boxes(boxes[nearest])
    empty = Load(jnp.bool_(False), jnp.zeros(3), jnp.zeros(3), jnp.eye(3))

    def has_posture(base: Array, pitch: Array) -> Array:
        way = rows.unit(place[:2] - base)
        aim = jnp.append(jnp.cos(pitch) * way, -jnp.sin(pitch))
        stand = jnp.append(base, jnp.arctan2(way[1], way[0]))
        posture = lambda arm: Joints(stand, jnp.float32(fetch.LIFT), jnp.zeros(2), arm)

        def pose_error(arm: Array) -> Array:
            frames = forward_kinematics(posture(arm))
            return jnp.append(grip_center(frames) - place, AIM_WEIGHT * (frames.axes[-1, 0] - aim))

        def step(arm: Array, _: None) -> tuple[Array, None]:
            bend = joint_step(jax.jacfwd(pose_error)(arm), -pose_error(arm), DAMPING)
            most = jnp.maximum(jnp.max(jnp.abs(bend)), MAX_STEP)
            return jnp.clip(arm + MAX_STEP * bend / most, *fetch.limits(arm.dtype)), None

        arm = jax.lax.scan(step, jnp.asarray(fetch.REST, jnp.float32), length=STEPS)[0]
        frames = forward_kinematics(posture(arm))
        there = rows.length(grip_center(frames) - place) < TOLERANCE
        return there & (max_depth(close, frames, empty) <= SKIN)

    each = jax.vmap(jax.vmap(has_posture, (None, 0)), (0, None))
    return jnp.any(each(bases, jnp.asarray(np.array(PITCHES, np.float32))), 1)
