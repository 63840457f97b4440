"""Whether Fetch can take a thing: postures of its arm that reach it and touch nothing.

The base faces the thing, and damped least squares lead the ball in which the hand grasps to a
place, pointing ahead and down by each of `PITCHES`. A posture that gets there without lying in a
box is a proof that what is there can be taken; to find none proves nothing.
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
from .movement import SKIN, Load, depth_of

REACH, TOUCH = 0.03, 0.015  # m, of the ball in which the hand grasps: ahead of it, and its radius
PITCHES = (0.35, 0.8, 1.3)  # rad, that the hand points down
STEPS, STRIDE = 40, 0.4  # of the least squares, and how far a joint moves in one, rad
DAMPING, AIM = 0.03, 0.2  # m; and m that a radian of the hand's direction counts as
CLOSE = 3e-3  # m, of the place, where a posture is there
BOXES = 128  # nearest to the place, that are looked at


def grip(frames: Frames) -> Array:
    """The middle of the ball in which the hand grasps, [3] m."""
    ahead = jnp.asarray([REACH, 0.0, 0.0], frames.origin.dtype)
    return frames.origin[-1] + fetch.in_space(frames.axes[-1], ahead)


def turn(slope: Array, shift: Array, damping: float) -> Array:
    """How joints turn, [J], so that what has this slope by them, [K, J], is shifted, [K].

    Damped least squares, J^T (J J^T + damping^2)^-1 shift (Wampler 1986,
    doi:10.1109/TSMC.1986.289285).

    >>> slope = jnp.array([[2.0, 0.0, 0.0]])
    >>> turn(slope, jnp.array([1.0]), 0.0).tolist()
    [0.5, 0.0, 0.0]
    """
    square = jnp.sum(slope[:, None] * slope[None], -1)
    square = square + damping**2 * jnp.eye(len(slope), dtype=slope.dtype)
    return jnp.sum(slope * solve(square, shift)[:, None], 0)


@jax.jit
def found(boxes: Array, bases: Array, place: Array) -> Array:
    """Whether a posture brings the hand to a place, from each of some for the base, [B] bool.

    Args:
        boxes: [R, 8] rows of `Boxes`, all that is in the way.
        bases: [B, 2] m, where the base may stand.
        place: [3] m, for the middle of the ball in which the hand grasps.

    >>> floor = jnp.array([[0.0, 0.0, -0.05, 5.0, 5.0, 0.05, 1.0, 0.0]])
    >>> found(floor, jnp.array([[-0.7, 0.0], [-2.0, 0.0]]), jnp.array([0.0, 0.0, 0.8])).tolist()
    [True, False]
    """
    nearest = jax.lax.top_k(-contact.point(Boxes(boxes), place), min(BOXES, len(boxes)))[1]
    close = Boxes(boxes[nearest])
    empty = Load(jnp.bool_(False), jnp.zeros(3), jnp.zeros(3), jnp.eye(3))

    def taken(base: Array, pitch: Array) -> Array:
        way = rows.unit(place[:2] - base)
        aim = jnp.append(jnp.cos(pitch) * way, -jnp.sin(pitch))
        stand = jnp.append(base, jnp.arctan2(way[1], way[0]))
        posture = lambda arm: Joints(stand, jnp.float32(fetch.LIFT), jnp.zeros(2), arm)

        def off(arm: Array) -> Array:
            frames = forward_kinematics(posture(arm))
            return jnp.append(grip(frames) - place, AIM * (frames.axes[-1, 0] - aim))

        def step(arm: Array, _: None) -> tuple[Array, None]:
            bend = turn(jax.jacfwd(off)(arm), -off(arm), DAMPING)
            most = jnp.maximum(jnp.max(jnp.abs(bend)), STRIDE)
            return jnp.clip(arm + STRIDE * bend / most, *fetch.limits(arm.dtype)), None

        arm = jax.lax.scan(step, jnp.asarray(fetch.REST, jnp.float32), length=STEPS)[0]
        frames = forward_kinematics(posture(arm))
        there = rows.length(grip(frames) - place) < CLOSE
        return there & (depth_of(close, frames, empty) <= SKIN)

    each = jax.vmap(jax.vmap(taken, (None, 0)), (0, None))
    return jnp.any(each(bases, jnp.asarray(np.array(PITCHES, np.float32))), 1)
