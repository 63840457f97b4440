"""Kinematic movement of Fetch, without forces: it follows commands except on collision.

A step has three parts, so that its cost is fixed. First the base turns and drives, with arm and
load rigid on it. If it collides, it is pushed out of the deepest contact along the horizontal
normal, so that it slides along walls; if it still collides, it stays. Then the arm moves. If it
collides, it is turned back along the gradient of the deepest penetration, so that it slides too. If
it still collides, it stays; it also stays if the center line of a link got into a box, where the
gradient is zero. An accepted part penetrates no box by more than `SKIN`. The hand cannot pass
through thin boards, because its paths between two positions, as capsules, count as parts of the
robot. The robot may touch itself. Only the `near` boxes are tested whose bounding boxes are closest
to the robot's.

After the kinematic mode of Galactic (Berges et al. 2023, arXiv:2306.07552). There spheres along the
links represent the robot, and contact undoes the arm's step, and the base's if sliding is off.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.fields import number, pytree, size, static

from . import contact, fetch
from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics, place_frames

SKIN = 5e-4  # m, tolerated penetration
MIN_SLOPE = 0.03  # m per rad, minimum gradient of the depth for the arm to slide
MIN_LEVEL = 0.2  # minimum horizontal fraction of a contact's normal for the base to slide
# Rotation moves points along arcs, so the arm is pushed out by this multiple of the depth plus this
# distance, m.
PUSH_FACTOR, PUSH_MARGIN = 1.3, 2e-3
BASE_BOTTOM = 0.02  # m, height of the bottom of the base above the floor
BODY_REACH = 0.36  # m, maximum reach of base, torso and head from the base's axis
LIMB_REACH = 0.15  # m, maximum reach of the arm outside the bounding box of its frames
# Capsules whose end points are swept: elbow, wrist and hand. They are int32 for the reason given in
# `tasks.task`.
SWEPT_LINKS = np.array([7, 9, 11], np.int32)
SWEPT_RADIUS = 0.05  # m, of the sweeps; smaller than the capsules, which already touch at the start


@pytree
class Load:
    """Box held rigidly by the gripper, or an empty hand."""

    held: Array  # [] bool
    half: Array  # [3] half sizes along its own axes, m
    place: Array  # [3] its center in the gripper's frame, m
    axes: Array  # [3, 3] its axes there, one per row


class MoveResult(NamedTuple):
    """Result of a step."""

    joints: Joints
    frames: Frames
    base_free: Array  # [] bool: the base reached its target
    arm_free: Array  # [] bool: the arm reached its target
    left_out: Array  # [] boxes in range beyond the capacity


@pytree
class Movement:
    """Step sizes of base and arm, and sliding on contact.

    >>> import jax.numpy as jnp
    >>> wall = Boxes(jnp.array([[2.0, 0.0, 1.0, 0.1, 5.0, 1.0, 1.0, 0.0]]))
    >>> start = Joints(jnp.array([1.6, 0.0, -1.5]), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> free = Load(jnp.bool_(False), jnp.zeros(3), jnp.zeros(3), jnp.eye(3))
    >>> on = jnp.zeros(9).at[1].set(1.0)
    >>> after = Movement().move(wall, start, free, on)
    >>> bool(after.base_free), [round(float(x), 3) for x in after.joints.base]
    (True, [1.607, -0.1, -1.5])
    """

    max_turn: Array | float = number(
        default=0.0873, above=0, most=np.pi, unit="rad"
    )  # [] of the base per step
    max_forward: Array | float = number(default=0.1, above=0, unit="m")  # [] of the base per step
    max_joint: Array | float = number(
        default=0.196, above=0, most=np.pi, unit="rad"
    )  # [] of the arm per step
    slide: bool = static(default=True)  # slide along obstacles; else base and arm stay on contact
    near: int = size(default=32, least=1)  # boxes that are tested

    def move(self, boxes: Boxes, joints: Joints, load: Load, action: Array) -> MoveResult:
        """Advance one step among boxes [K].

        The cost is about 4 x 17 capsules x `near` boxes x 250 operations.

        Args:
            boxes: obstacles.
            joints: before the step.
            load: object in the hand.
            action: [9] in -1 ... 1: turn and forward of the base, the arm's joints; with the first
                two only, [2], the arm does not move.
        """
        arm = joints.arm
        if len(action) > 2:
            arm = jnp.clip(arm + self.max_joint * action[2:], *fetch.limits(arm.dtype))
        x, y, yaw = joints.base
        yaw = yaw + self.max_turn * action[0]
        way = self.max_forward * action[1] * jnp.stack([jnp.cos(yaw), jnp.sin(yaw)])
        sent = jnp.stack([x + way[0], y + way[1], yaw])
        old, new = _step_frames(joints, arm)
        before, driven = place_frames(old, joints.base), place_frames(old, sent)
        close, left_out = nearest_boxes(
            boxes, (before, driven, place_frames(new, sent)), load, self.near
        )

        hand = _swept_ends(before)
        depth, normal = deepest_contact(close, driven, load, hand)
        base_free = depth <= SKIN
        shift = jnp.where(base_free, 0.0, self._push_base_out(depth, normal))
        slid = place_frames(old, sent + shift)
        stays = max_depth(close, slid, load, hand) > SKIN
        base = jnp.where(stays, joints.base, sent + shift)
        there = jax.tree.map(lambda a, b: jnp.where(stays, a, b), before, slid)

        if len(action) == 2:
            return MoveResult(
                replace(joints, base=base), there, base_free, jnp.ones_like(stays), left_out
            )
        paths, sent = _swept_ends(there), replace(joints, base=base, arm=arm)
        depth, slope = _depth_gradient(close, sent, place_frames(new, base), load, paths)
        arm_free = depth <= SKIN
        turned = arm + jnp.where(arm_free, 0.0, self._turn_arm_back(depth, slope))
        turned = jnp.clip(turned, *fetch.limits(arm.dtype))
        reached = forward_kinematics(replace(sent, arm=turned))
        stays = max_depth(close, reached, load, paths) > SKIN
        frames = jax.tree.map(lambda a, b: jnp.where(stays, a, b), there, reached)
        joints = replace(sent, arm=jnp.where(stays, joints.arm, turned))
        return MoveResult(joints, frames, base_free, arm_free & ~stays, left_out)

    def _push_base_out(self, depth: Array, normal: Array) -> Array:
        """Return the shift of the base out of a contact, [3] m, at most a step."""
        flat = jnp.sqrt(normal[0] ** 2 + normal[1] ** 2)
        slides = (flat > MIN_LEVEL) & self.slide
        put = jnp.where(slides, depth / jnp.where(slides, flat, 1.0) ** 2, 0.0)
        put = jnp.minimum(put, self.max_forward)
        return put * jnp.stack([normal[0], normal[1], jnp.zeros_like(put)])

    def _turn_arm_back(self, depth: Array, slope: Array) -> Array:
        """Return the rotation of the arm out of a contact, [7] rad, at most a step."""
        square = jnp.sum(slope**2)
        slides = (square > MIN_SLOPE**2) & self.slide
        back = (PUSH_FACTOR * depth + PUSH_MARGIN) / jnp.where(slides, square, 1.0)
        turn = -jnp.where(slides, back, 0.0) * slope
        most = jnp.max(jnp.abs(turn))
        return turn * jnp.minimum(1.0, self.max_joint / jnp.where(most > 0, most, 1.0))


def _step_frames(joints: Joints, arm: Array) -> tuple[Frames, Frames]:
    """Return the frames before and after the arm's step, with the base at the origin."""
    repeat = lambda x: jnp.broadcast_to(x[None], (2, *x.shape))
    twice = jax.tree.map(repeat, replace(joints, base=jnp.zeros_like(joints.base)))
    found = forward_kinematics(replace(twice, arm=jnp.stack([joints.arm, arm])))
    first, second = (jax.tree.map(lambda x, i=i: x[i], found) for i in range(2))
    return first, second


def _swept_ends(frames: Frames) -> Array:
    """Return the ends of the capsules in `SWEPT_LINKS` closer to the hand, [3, 3] m."""
    return fetch.capsules(frames)[1][SWEPT_LINKS]


def load_pose(frames: Frames, load: Load) -> tuple[Array, Array]:
    """Return the pose of the load: center [3] m, and axes, one per row, [3, 3]."""
    hand, turn = frames.origin[-1], frames.axes[-1]
    return hand + fetch.to_world(turn, load.place), fetch.to_world(turn[None], load.axes)


def link_capsules(frames: Frames, paths: Array | None = None) -> tuple[Array, Array, Array]:
    """Return the robot's capsules without the base: starts and ends [S, 3] and radii [S], m.

    With `paths` [3, 3], the previous ends of `SWEPT_LINKS`, include the sweeps from there.
    """
    start, end, radius = fetch.capsules(frames)
    if paths is None:
        return start, end, radius
    path = jnp.full(len(SWEPT_LINKS), SWEPT_RADIUS, radius.dtype)
    return (
        jnp.concatenate([start, paths]),
        jnp.concatenate([end, end[SWEPT_LINKS]]),
        jnp.concatenate([radius, path]),
    )


def max_depth(boxes: Boxes, frames: Frames, load: Load, paths: Array | None = None) -> Array:
    """Return the maximum penetration of robot and load, [] m, negative without contact."""
    arm, base, of_load = _depths(boxes, frames, load, paths)
    return jnp.max(jnp.maximum(jnp.maximum(jnp.max(arm, 0), base), of_load))


def deepest_contact(
    boxes: Boxes, frames: Frames, load: Load, paths: Array | None = None
) -> tuple[Array, Array]:
    """Return the maximum penetration of robot and load, [] m, and the direction out of it, [3].

    The direction is zero if the load penetrates deeper; then the base does not slide.
    """
    arm, base, of_load = _depths(boxes, frames, load, paths)
    each, of_load = jnp.maximum(jnp.max(arm, 0), base), jnp.max(of_load)
    box, most = Boxes(boxes.rows[jnp.argmax(each)]), jnp.max(each)
    start, end, radius = link_capsules(frames, paths)
    # The base is represented by the point of its axis that is level with the box.
    foot = frames.origin[0].at[2].set(jnp.clip(box.rows[2], BASE_BOTTOM, fetch.BASE_HEIGHT))
    start, end = (jnp.concatenate([x, foot[None]]) for x in (start, end))
    again = contact.capsule_depths(Boxes(box.rows[None]), start[:-1], end[:-1], radius)[:, 0]
    shape = jnp.argmax(jnp.append(again, base[jnp.argmax(each)]))
    normal = contact.exit_direction(box, start[shape], end[shape])
    return jnp.maximum(most, of_load), jnp.where(of_load > most, 0.0, normal)


def _depth_gradient(
    boxes: Boxes, joints: Joints, frames: Frames, load: Load, paths: Array
) -> tuple[Array, Array]:
    """Return the maximum penetration, [] m, and its gradient by the arm's joints, [7].

    The gradient is zero if base or load penetrate deeper; then the arm does not slide.
    """
    arm, base, of_load = _depths(boxes, frames, load, paths)
    limbs, others = jnp.max(arm), jnp.maximum(jnp.max(base), jnp.max(of_load))
    shape, row = jnp.divmod(jnp.argmax(arm), arm.shape[1])
    box = Boxes(boxes.rows[row][None])

    def depth(angles: Array) -> Array:
        found = link_capsules(forward_kinematics(replace(joints, arm=angles)), paths)
        return contact.capsule_depths(box, *(x[shape][None] for x in found))[0, 0]

    slope = jax.jacfwd(depth)(joints.arm)  # reverse mode would scatter, slow on a TPU
    return jnp.maximum(limbs, others), jnp.where(others > limbs, 0.0, slope)


def _depths(
    boxes: Boxes, frames: Frames, load: Load, paths: Array | None
) -> tuple[Array, Array, Array]:
    """Return depths in each box: of all links [S, K], of the base [K] and of the load [K], m."""
    arm = contact.capsule_depths(boxes, *link_capsules(frames, paths))
    foot = frames.origin[0, :2]
    base = contact.cylinder_depths(boxes, foot, BASE_BOTTOM, fetch.BASE_HEIGHT, fetch.BASE_RADIUS)
    middle, axes = load_pose(frames, load)
    of_load = contact.cuboid_depths(boxes, middle, axes, load.half)
    return arm, base, jnp.where(load.held, of_load, -contact.FAR)


def nearest_boxes(
    boxes: Boxes, places: tuple[Frames, ...], load: Load, count: int
) -> tuple[Boxes, Array]:
    """Return the `count` boxes closest to the robot by bounding boxes, and how many are left out.

    Two bounding boxes contain the robot at all its `places`: of base, torso and head, and of the
    arm with its load. Left out are boxes that could collide but exceed `count`, [].
    """
    first = fetch.FRAMES.index(fetch.ARM[0][0])
    points = jnp.concatenate([place.origin[first:] for place in places])
    feet = jnp.stack([place.origin[0] for place in places])
    # Maximum reach of a load from the gripper's frame.
    beyond = rows.length(load.place) + rows.length(load.half)
    wide = LIMB_REACH + jnp.where(load.held, beyond, 0.0)
    # A base that slides is pushed at most one step farther.
    wide = wide + jnp.max(jnp.max(feet, 0) - jnp.min(feet, 0)) + SKIN
    body = BODY_REACH + wide - LIMB_REACH
    c, s = jnp.abs(boxes.rows[:, 6]), jnp.abs(boxes.rows[:, 7])
    hx, hy, hz = boxes.half
    half = (c * hx + s * hy, s * hx + c * hy, hz)
    gaps = []
    for x, margin in ((points, wide), (feet, body)):
        low, high = jnp.min(x, 0) - margin, jnp.max(x, 0) + margin
        apart = [
            jnp.maximum(low[i] - m - h, m - h - high[i])
            for i, (m, h) in enumerate(zip(boxes.middle, half))
        ]
        flat = jnp.maximum(apart[0], apart[1])
        gaps.append(jnp.maximum(flat, apart[2]) if x is points else flat)
    gap = jnp.minimum(gaps[0], gaps[1])
    count = min(count, gap.shape[0])
    found = jax.lax.top_k(-gap, count)[1]
    left_out = jnp.maximum(jnp.sum(gap <= 0) - count, 0)
    return Boxes(boxes.rows[found]), left_out
