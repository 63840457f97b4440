"""Scripted policy that drives Fetch to an object and grasps it, as a teacher for learners.

The base follows the path over the floor, and at its end faces the object. The arm stays folded
until `UNFOLD_RANGE` before the end. Then the hand follows its path through free space, pointing
steeply down, by damped least squares; in the null space the arm returns to its folded posture. The
last decimetres are straight. The script ignores contacts and leaves them to the movement.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.fields import pytree, size
from jaxgpu.inputs.ranges import numbers

from ..robot import fetch, reachability
from ..robot.fetch import Joints, forward_kinematics
from ..robot.movement import Movement
from .task import BEND_JOINTS, ROLL_JOINTS

# Positions of the required entries in the observation of a carrying task.
TO_OBJECT, HAND_TO_OBJECT, ANGLES = (
    slice(0, 3),
    slice(3, 6),
    (slice(22, 26), slice(26, 29), slice(29, 32)),
)
ROUTE, AHEAD, WAY = slice(35, 38), slice(-3, None), -4
ARRIVAL, UNFOLD_RANGE = 0.1, 0.6  # m over the floor: the base has arrived; the arm unfolds
AIM_TOLERANCE = 0.4  # rad, heading error within which the base drives
HAND_STEP, NEAR_RANGE = 0.12, 0.2  # m, hand step; m, distance for straight motion and grasp
HAND_PITCH, AIM_WEIGHT = 1.1, 0.1  # rad, downward pitch of the hand; m per rad of that error
DAMPING, RETURN_RATE, MAX_BEND = (
    0.1,
    0.3,
    0.4,
)  # m; fraction of the return to the folded arm; rad per step


@pytree
class ScriptedPolicy:
    """Policy that maps an observation of `MobilePick` to an action; made by `MobilePick.script`."""

    movement: Movement
    length: int = size(least=1)  # N, length of an observation

    def __call__(self, observation: Array) -> Array:
        """Return the action [10], within -1 and 1, for an observation [N].

        Raises:
            ValueError: an observation of the wrong shape, or not finite.
        """
        observation = jnp.asarray(numbers("script: observation", observation, (self.length,)))
        if not jnp.issubdtype(observation.dtype, jnp.floating):
            observation = observation.astype(float)
        thing, off, arm = (
            observation[TO_OBJECT],
            observation[HAND_TO_OBJECT],
            _arm_angles(observation),
        )
        left, *way = observation[ROUTE]
        flat = jnp.sqrt(thing[0] ** 2 + thing[1] ** 2)
        course, bearing = jnp.arctan2(way[1], way[0]), jnp.arctan2(thing[1], thing[0])
        there = left < ARRIVAL
        turn = jnp.where(there, bearing, course) / self.movement.max_turn
        drive = jnp.where(~there & (jnp.abs(course) < AIM_TOLERANCE), 1.0, 0.0)

        far = rows.length(off)
        close = far < NEAR_RANGE
        ahead = jnp.where(close, off / jnp.maximum(far, 1e-3), observation[AHEAD])
        shift = ahead * jnp.minimum(HAND_STEP, jnp.where(close, far, observation[WAY]) + 0.01)
        level = jnp.append(thing[:2] / jnp.maximum(flat, 1e-3), 0.0)
        aim = jnp.cos(HAND_PITCH) * level - jnp.sin(HAND_PITCH) * jnp.array([0.0, 0.0, 1.0])
        folding = (jnp.asarray(fetch.REST, arm.dtype) - arm + jnp.pi) % (2 * jnp.pi) - jnp.pi
        bend = jnp.where(
            left < UNFOLD_RANGE, _arm_step(arm, shift, aim, RETURN_RATE * folding), folding
        )
        bend = bend / self.movement.max_joint
        bend = bend / jnp.maximum(jnp.max(jnp.abs(bend)), 1.0)
        grip = jnp.where(close, 1.0, 0.0)
        return jnp.concatenate([jnp.stack([grip, jnp.clip(turn, -1, 1), drive]), bend])


def _arm_angles(observation: Array) -> Array:
    """Return the angles of the arm's joints, [7]."""
    bends, cosines, sines = (observation[at] for at in ANGLES)
    arm = jnp.zeros(7, observation.dtype).at[BEND_JOINTS].set(bends)
    return arm.at[ROLL_JOINTS].set(jnp.arctan2(sines, cosines))


def _arm_step(arm: Array, shift: Array, aim: Array, back: Array) -> Array:
    """Return joint increments [7] that shift and aim the hand; `back` acts in the null space."""
    still = jnp.zeros(3, arm.dtype)

    def hand_pose(arm: Array) -> Array:
        joints = Joints(still, jnp.asarray(fetch.LIFT, arm.dtype), still[:2], arm)
        frames = forward_kinematics(joints)
        return jnp.concatenate([reachability.grip_center(frames), AIM_WEIGHT * frames.axes[-1, 0]])

    slope = jax.jacfwd(hand_pose)(arm)  # [6, 7]
    lean = aim - hand_pose(arm)[3:] / AIM_WEIGHT
    lean = lean * jnp.minimum(1.0, MAX_BEND / jnp.maximum(rows.length(lean), 1e-6))
    move = jnp.concatenate([shift, AIM_WEIGHT * lean])
    return back + reachability.joint_step(slope, move - jnp.sum(slope * back[None], 1), DAMPING)
