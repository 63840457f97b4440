"""A robot that goes where it is sent unless something is in the way: kinematic, without forces.

A step has three parts, each tried once, so that its work is fixed: the base turns and drives, arm
and load rigid on it; where that meets a box, the base is put out of the deepest contact along its
horizontal normal, which lets it slide along walls, and if it still meets one, it stays; then all
joints of the arm move, or none. A part that is accepted lies in no box deeper than `SKIN`, and
the hand is not let through thin boards: its paths between two places, as capsules, count as parts
of the robot. The robot may touch itself. Up to `near` boxes are looked at, those whose upright
hulls are nearest to the robot's.

After the kinematic mode of Galactic (Berges et al. 2023, arXiv:2306.07552), where spheres along the
links stand for the robot and the base is undone on contact unless sliding is asked for.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.pytree import number, pytree, size, static

from . import contact, fetch
from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics

SKIN = 5e-4  # m, how deep the robot may lie in a box
FLAT = 0.2  # least share of a contact's normal that lies in the plane, where the base slides
LOW = 0.02  # m, of the bottom of the base above the floor
BODY = 0.36  # m, that base, torso and head reach from the axis of the base at most
LIMBS = 0.15  # m, that the arm reaches at most beyond the hull of its frames
# capsules whose ends are followed on their way: those of the elbow, the wrist and the hand
SWEPT = np.array([7, 9, 11])
SWEPT_RADIUS = 0.05  # m, of these ways: less than that of the capsules, which hold where they begin


@pytree
class Load:
    """What the hand holds: a box that is rigid to the gripper, or nothing."""

    held: Array  # [] bool
    half: Array  # [3] half sizes along its own axes, m
    place: Array  # [3] its middle in the gripper's frame, m
    axes: Array  # [3, 3] its axes there, one a row


class Moved(NamedTuple):
    """Where a step led."""

    joints: Joints
    frames: Frames
    base_free: Array  # [] bool: the base went where it was sent
    arm_free: Array  # [] bool: so did the arm
    left_out: Array  # [] boxes near enough to be met that were not looked at


@pytree
class Movement:
    """How far a step goes, and whether the base slides.

    >>> import jax.numpy as jnp
    >>> wall = Boxes(jnp.array([[2.0, 0.0, 1.0, 0.1, 5.0, 1.0, 1.0, 0.0]]))
    >>> start = Joints(jnp.array([1.6, 0.0, -1.5]), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> free = Load(jnp.bool_(False), jnp.zeros(3), jnp.zeros(3), jnp.eye(3))
    >>> on = jnp.zeros(9).at[1].set(1.0)
    >>> after = Movement().move(wall, start, free, on)
    >>> bool(after.base_free), [round(float(x), 3) for x in after.joints.base]
    (True, [1.607, -0.1, -1.5])
    """

    max_turn: Array | float = number(default=0.0873, above=0, unit="rad")  # [] of the base a step
    max_forward: Array | float = number(default=0.1, above=0, unit="m")  # [] of the base a step
    max_joint: Array | float = number(default=0.196, above=0, unit="rad")  # [] of the arm a step
    slide: bool = static(default=True)  # along walls; else the base stays on contact
    near: int = size(default=32, least=1)  # boxes that are looked at

    def move(self, boxes: Boxes, joints: Joints, load: Load, action: Array) -> Moved:
        """One step in boxes [K]; about 17 capsules by `near` boxes by 250 operations, three times.

        Args:
            boxes: what is in the way.
            joints: before.
            load: what the hand holds.
            action: [9] in -1 ... 1: turn and forward of the base, the arm's joints.
        """
        low, high = fetch.limits(joints.arm.dtype)
        arm = jnp.clip(joints.arm + self.max_joint * action[2:], low, high)
        x, y, yaw = joints.base
        yaw = yaw + self.max_turn * action[0]
        way = self.max_forward * action[1] * jnp.stack([jnp.cos(yaw), jnp.sin(yaw)])
        sent = replace(joints, base=jnp.stack([x + way[0], y + way[1], yaw]))
        before, driven, reached = _three(joints, sent, replace(sent, arm=arm))
        close, left_out = nearest(boxes, (before, driven, reached), load, self.near)

        hand = _swept(before)
        depth, normal = deepest(close, driven, load, hand)
        base_free = depth <= SKIN
        flat = jnp.sqrt(normal[0] ** 2 + normal[1] ** 2)
        slides = ~base_free & (flat > FLAT) & self.slide
        put = jnp.where(slides, depth / jnp.where(slides, flat, 1.0) ** 2, 0.0)
        put = jnp.minimum(put, self.max_forward)  # no farther than it drives
        shift = put * jnp.stack([normal[0], normal[1], jnp.zeros_like(put)])
        slid = _shifted(driven, shift)
        stays = deepest(close, slid, load, hand)[0] > SKIN
        pick = lambda new, old: jnp.where(stays, old, new)
        base = pick(sent.base + shift, joints.base)
        there = jax.tree.map(pick, slid, before)

        arm_sent = forward_kinematics(replace(joints, base=base, arm=arm))
        arm_free = deepest(close, arm_sent, load, _swept(there))[0] <= SKIN
        frames = jax.tree.map(lambda new, old: jnp.where(arm_free, new, old), arm_sent, there)
        joints = replace(joints, base=base, arm=jnp.where(arm_free, arm, joints.arm))
        return Moved(joints, frames, base_free, arm_free, left_out)


def _three(*joints: Joints) -> list[Frames]:
    """The frames of several postures, computed at once."""
    stacked = forward_kinematics(jax.tree.map(lambda *parts: jnp.stack(parts), *joints))
    return [jax.tree.map(lambda part, i=i: part[i], stacked) for i in range(len(joints))]


def _swept(frames: Frames) -> Array:
    """Ends of the capsules in `SWEPT` nearer to the hand, [3, 3] m."""
    return fetch.capsules(frames)[1][SWEPT]


def _shifted(frames: Frames, shift: Array) -> Frames:
    return replace(frames, origin=frames.origin + shift[None])


def loaded(frames: Frames, load: Load) -> tuple[Array, Array]:
    """Where the load is: its middle [3] m, and its axes, one a row, [3, 3]."""
    hand, turn = frames.origin[-1], frames.axes[-1]
    return hand + fetch.in_space(turn, load.place), fetch.in_space(turn[None], load.axes)


def shapes(frames: Frames, paths: Array | None = None) -> tuple[Array, Array, Array]:
    """Capsules of the robot, starts and ends [S, 3] and radii [S], m, without its base.

    With `paths` [3, 3], where the ends in `SWEPT` were before a step, also their ways from there.
    """
    start, end, radius = fetch.capsules(frames)
    if paths is None:
        return start, end, radius
    path = jnp.full(len(SWEPT), SWEPT_RADIUS, radius.dtype)
    return (
        jnp.concatenate([start, paths]),
        jnp.concatenate([end, end[SWEPT]]),
        jnp.concatenate([radius, path]),
    )


def deepest(
    boxes: Boxes, frames: Frames, load: Load, paths: Array | None = None
) -> tuple[Array, Array]:
    """How deep robot and load lie in boxes at most, [] m, and the way out of there, [3].

    It is zero where the load lies deeper: there the base does not slide.
    """
    arm = contact.segments(boxes, *shapes(frames, paths))
    foot = frames.origin[0, :2]
    base = contact.cylinder(boxes, foot, LOW, fetch.BASE_HEIGHT, fetch.BASE_RADIUS)
    depth = jnp.concatenate([arm.depth, base.depth])
    out = [jnp.concatenate(parts) for parts in zip(arm.out, base.out)]
    of_robot = jnp.max(depth)
    worst = (depth >= of_robot).astype(depth.dtype)
    share = worst / jnp.sum(worst)
    normal = jnp.stack([jnp.sum(share * part) for part in out])
    middle, axes = loaded(frames, load)
    of_load = jnp.max(contact.cuboid(boxes, middle, axes, load.half))
    of_load = jnp.where(load.held, of_load, -jnp.inf)
    return jnp.maximum(of_robot, of_load), jnp.where(of_load > of_robot, 0.0, normal)


def nearest(
    boxes: Boxes, places: tuple[Frames, ...], load: Load, count: int
) -> tuple[Boxes, Array]:
    """The `count` boxes whose upright hulls are nearest to those of the robot, and how many more
    could be met, [].

    Two hulls hold the robot on all its `places`: of base, torso and head, and of the arm with its
    load.
    """
    first = fetch.FRAMES.index(fetch.ARM[0][0])
    points = jnp.concatenate([place.origin[first:] for place in places])
    feet = jnp.stack([place.origin[0] for place in places])
    # a load reaches at most so far beyond the gripper's frame
    beyond = rows.length(load.place) + rows.length(load.half)
    wide = LIMBS + jnp.where(load.held, beyond, 0.0)
    # a base that slides is put at most a step farther
    wide = wide + jnp.max(jnp.max(feet, 0) - jnp.min(feet, 0)) + SKIN
    body = BODY + wide - LIMBS
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
