"""A script that drives Fetch to a thing and takes it: a teacher for learners that have one.

The base goes down the way over the floor, and faces the thing where that ends. The arm is folded
until `UNFOLDS` before there; then the hand goes down its way through free space, pointing steeply
down, by damped least squares, in whose null space the arm goes back to where it was folded; the
last decimetres are straight. It knows no contacts but what the movement makes of them.
"""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.fields import pytree, size
from jaxgpu.inputs.ranges import numbers

from ..robot import fetch, grasps
from ..robot.fetch import Joints, forward_kinematics
from ..robot.movement import Movement
from .task import BENDS, ROLLS

# where what is needed stands in the observation of a task of carrying
THING, OFF, ANGLES = slice(0, 3), slice(3, 6), (slice(22, 26), slice(26, 29), slice(29, 32))
ROUTE, AHEAD, WAY = slice(35, 38), slice(-3, None), -4
THERE, UNFOLDS = 0.1, 0.6  # m over the floor, where the base is there, and where the arm unfolds
AIMED = 0.4  # rad off the way, within which the base drives
STRIDE, CLOSE = 0.12, 0.2  # m of the hand a step; m, within which it goes straight and grasps
DOWN, AIM = 1.1, 0.1  # rad, that the hand points down; m that a radian of that counts as
DAMPING, BACK, BEND = 0.1, 0.3, 0.4  # m; share of the way back to the folded arm; rad a step


@pytree
class Script:
    """What it does of an observation of `MobilePick`; its `script` makes it."""

    movement: Movement
    length: int = size(least=1)  # N, of an observation

    def __call__(self, observation: Array) -> Array:
        """The action [10], within -1 and 1, of an observation [N].

        Raises:
            ValueError: an observation of another shape, or one that is not finite.
        """
        observation = jnp.asarray(numbers("script: observation", observation, (self.length,)))
        if not jnp.issubdtype(observation.dtype, jnp.floating):
            observation = observation.astype(float)
        thing, off, arm = observation[THING], observation[OFF], _arm(observation)
        left, *way = observation[ROUTE]
        flat = jnp.sqrt(thing[0] ** 2 + thing[1] ** 2)
        course, bearing = jnp.arctan2(way[1], way[0]), jnp.arctan2(thing[1], thing[0])
        there = left < THERE
        turn = jnp.where(there, bearing, course) / self.movement.max_turn
        drive = jnp.where(~there & (jnp.abs(course) < AIMED), 1.0, 0.0)

        far = rows.length(off)
        close = far < CLOSE
        ahead = jnp.where(close, off / jnp.maximum(far, 1e-3), observation[AHEAD])
        shift = ahead * jnp.minimum(STRIDE, jnp.where(close, far, observation[WAY]) + 0.01)
        level = jnp.append(thing[:2] / jnp.maximum(flat, 1e-3), 0.0)
        aim = jnp.cos(DOWN) * level - jnp.sin(DOWN) * jnp.array([0.0, 0.0, 1.0])
        folding = (jnp.asarray(fetch.REST, arm.dtype) - arm + jnp.pi) % (2 * jnp.pi) - jnp.pi
        bend = jnp.where(left < UNFOLDS, _reaching(arm, shift, aim, BACK * folding), folding)
        bend = bend / self.movement.max_joint
        bend = bend / jnp.maximum(jnp.max(jnp.abs(bend)), 1.0)
        grip = jnp.where(close, 1.0, 0.0)
        return jnp.concatenate([jnp.stack([grip, jnp.clip(turn, -1, 1), drive]), bend])


def _arm(observation: Array) -> Array:
    """The angles of the arm's joints, [7]."""
    bends, cosines, sines = (observation[at] for at in ANGLES)
    arm = jnp.zeros(7, observation.dtype).at[BENDS].set(bends)
    return arm.at[ROLLS].set(jnp.arctan2(sines, cosines))


def _reaching(arm: Array, shift: Array, aim: Array, back: Array) -> Array:
    """How the joints turn so that the hand is shifted and aims, [7]; `back` where that is free."""
    still = jnp.zeros(3, arm.dtype)

    def hand(arm: Array) -> Array:
        joints = Joints(still, jnp.asarray(fetch.LIFT, arm.dtype), still[:2], arm)
        frames = forward_kinematics(joints)
        return jnp.concatenate([grasps.grip(frames), AIM * frames.axes[-1, 0]])

    slope = jax.jacfwd(hand)(arm)  # [6, 7]
    lean = aim - hand(arm)[3:] / AIM
    lean = lean * jnp.minimum(1.0, BEND / jnp.maximum(rows.length(lean), 1e-6))
    move = jnp.concatenate([shift, AIM * lean])
    return back + grasps.turn(slope, move - jnp.sum(slope * back[None], 1), DAMPING)
