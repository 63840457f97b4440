"""A robot that weighs something: Fetch and the thing it handles, moved by forces, in contact.

Commands are those of `movement`, shares of the largest step of base and arm, and the grip. They
move the targets of servos, evenly over a step of 0.15 s, in which the base goes 0.67 m/s and a
joint 1.3 rad/s at most; what the servos drive has masses and meets the boxes of the house by
MuJoCo's contacts. So the robot is held up, pushes and slides, and a
thing is held between the fingers by friction, or slips. As in `movement`, other small things are in
nobody's way, and the robot may touch itself.
"""

import dataclasses
import functools
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import rotations
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.inputs.ranges import numbers
from jaxgpu.physics.rigid import forward, integrators
from jaxgpu.physics.rigid.model import Model, load
from jaxgpu.physics.rigid.models.source import compiled

from . import fetch, mechanism, surroundings
from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics
from .mechanism import WIDEST
from .movement import Load, loaded

LEAD = 0.4  # rad, that the target of a joint of the arm is ahead of it at most
GAP = 0.03  # m, of the palm behind the middle of the fingers
SQUEEZE = 0.01  # m, beyond the middle, of the target of each finger that closes
HELD = 1.0  # N of each finger at which a thing counts as held
PLANE, TORSO, ARM, FINGERS, OBJECT = slice(3), 3, slice(4, 11), slice(11, 13), 13  # coordinates


@pytree
class Driven:
    """What moves, and what its servos are told."""

    physics: forward.State  # of the model
    arm: Array  # [7] rad, targets of the arm's servos
    torso: Array  # [] m
    open: Array  # [] m, target of each finger
    press: Array  # [] N, of the finger that presses less on the thing


class Reached(NamedTuple):
    """Where a step led."""

    driven: Driven
    joints: Joints
    frames: Frames
    thing: Array  # [3] m, its middle
    axes: Array  # [3, 3] its axes, one a row
    left_out: Array  # [] boxes and contacts near enough to act that were not looked at


def loaded_model(iterations: int = 8) -> Model:
    """The mechanism of robot, boxes and thing, at the precision that is the default now.

    >>> loaded_model().layout.nv
    19
    """
    return load(_compiled(), contacts=24, iterations=iterations)


@functools.cache
def _compiled() -> Any:
    return compiled(mechanism.text())


@pytree
class Servos:
    """How far a step goes, and what the thing is made of.

    >>> import jax.numpy as jnp
    >>> start = Joints(jnp.zeros(3), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> servos, half = Servos(), jnp.full(3, 0.03)
    >>> driven = servos.begin(start, jnp.array([2.0, 0.0, 0.5]), jnp.eye(3), 0.05)
    >>> driven.physics.qpos.shape
    (20,)
    """

    model: Model = dataclasses.field(default_factory=loaded_model)  # its numbers are leaves
    max_turn: Array | float = number(
        default=0.0873, above=0, most=np.pi, unit="rad"
    )  # [] of the base a step
    max_forward: Array | float = number(default=0.1, above=0, unit="m")  # [] of the base a step
    max_joint: Array | float = number(
        default=0.196, above=0, most=np.pi, unit="rad"
    )  # [] of the arm a step
    density: Array | float = number(default=300.0, above=0, unit="kg/m^3")  # [] of the thing
    substeps: int = size(default=30, least=1)  # steps of the model in one of the task

    def begin(self, joints: Joints, thing: Array, axes: Array, fingers: Array | float) -> Driven:
        """At rest there, the fingers open by `fingers` m each.

        Args:
            joints: of the robot.
            thing: its middle, [3] m.
            axes: its axes, one a row, [3, 3].
            fingers: how far each is from the middle, m.
        """
        turn = rotations.from_matrix(axes.T)
        fingers = jnp.full(2, fingers, thing.dtype)
        parts = [joints.base, joints.torso[None], joints.arm, fingers, thing, turn]
        return Driven(
            physics=self.model.init(jnp.concatenate(parts)),
            arm=joints.arm,
            torso=joints.torso,
            open=fingers[0],
            press=jnp.zeros_like(fingers[0]),
        )

    def carried(self, joints: Joints, load: Load) -> tuple[Driven, Array, Array]:
        """At rest with a thing between the fingers, where it is, [3] m, and its axes [3, 3]."""
        thing, axes = loaded(forward_kinematics(joints), load)
        narrow = jnp.minimum(jnp.minimum(load.half[0], load.half[1]), WIDEST)
        driven = self.begin(joints, thing, axes, narrow)
        return replace(driven, open=jnp.full_like(driven.open, -SQUEEZE)), thing, axes

    def move(self, boxes: Boxes, driven: Driven, half: Array, action: Array) -> Reached:
        """One step among boxes [K].

        Args:
            boxes: what stands around.
            driven: before.
            half: half sizes of the thing, [3] m.
            action: [10] in -1 ... 1: the grip (above .5 the fingers close, below -.5 they open),
                turn and forward of the base, the arm's joints; what is beyond counts as the bound.

        Raises:
            ValueError: sizes or an action of another shape, not finite, or a size that is not
                above 0.
        """
        q = driven.physics.qpos
        half = jnp.asarray(numbers("Servos.move: half", half, (3,), above=0), q.dtype)
        action = jnp.asarray(numbers("Servos.move: action", action, (10,)), q.dtype)
        action = jnp.clip(action, -1, 1)
        told = jnp.clip(driven.arm + self.max_joint * action[3:], q[ARM] - LEAD, q[ARM] + LEAD)
        told = jnp.clip(told, *fetch.limits(q.dtype))
        wide = jnp.where(action[0] < -0.5, WIDEST, driven.open)
        wide = jnp.where(action[0] > 0.5, -SQUEEZE, wide)
        model, left_out = self.among(boxes, driven, half, told)
        seconds = self._seconds()
        ahead, turn = self.max_forward * action[2] / seconds, self.max_turn * action[1] / seconds
        none = jnp.zeros_like(driven.physics.qvel)

        def go(known: tuple, part: Array) -> tuple[tuple, None]:
            physics, _ = known
            yaw = physics.qpos[2]
            base = jnp.stack([ahead * jnp.cos(yaw), ahead * jnp.sin(yaw), turn, driven.torso])
            arm = driven.arm + part * (told - driven.arm)
            ctrl = jnp.concatenate([base, arm, jnp.stack([wide, wide])])
            return integrators.seen(model, physics, ctrl, none, self._press), None

        parts = jnp.arange(1, self.substeps + 1, dtype=q.dtype) / self.substeps
        (physics, press), _ = lax.scan(go, (driven.physics, driven.press), parts)
        after = replace(driven, physics=physics, arm=told, open=wide, press=press)
        joints, thing, axes = self.read(after)
        more = physics.overflow - driven.physics.overflow
        return Reached(after, joints, forward_kinematics(joints), thing, axes, left_out + more)

    def read(self, driven: Driven) -> tuple[Joints, Array, Array]:
        """The joints, and the thing's middle [3] m and axes [3, 3]."""
        q = driven.physics.qpos
        head = jnp.asarray([0.0, fetch.HEAD_DOWN], q.dtype)
        joints = Joints(base=q[PLANE], torso=q[TORSO], head=head, arm=q[ARM])
        turn = rotations.matrix(q[OBJECT + 3 :])
        columns = [jnp.stack(row) for row in turn]
        return joints, q[OBJECT : OBJECT + 3], jnp.stack(columns, 1)

    def among(self, boxes: Boxes, driven: Driven, half: Array, told: Array) -> tuple[Model, Array]:
        """The model with the boxes that are near and its thing, and how many more are near.

        Args:
            boxes: what stands around, [K].
            driven: where the robot is.
            half: half sizes of the thing, [3] m.
            told: where the arm is to get, [7] rad.
        """
        joints, thing, _ = self.read(driven)
        arrived = replace(joints, arm=told)
        times = jnp.asarray([0.0, 0.5, 1.0], thing.dtype)[:, None] * self._seconds()
        falls = self.model.option.gravity[None] * times**2 / 2
        flight = thing[None] + speed(driven)[None] * times + falls
        near, left_out = surroundings.near(boxes, (joints, arrived), flight, half, self.max_forward)
        return surroundings.furnished(self.model, near, half, self.density), left_out

    def _seconds(self) -> Array:
        """Of a step."""
        return self.substeps * self.model.option.timestep

    def _press(self, d: forward.Dynamics) -> Array:
        """The smaller of both fingers' forces on the thing, N."""
        pressed = jnp.zeros(2, d.qacc.dtype)
        index = lambda name: self.model.index("geom", name)
        fingers = np.array([index("left finger"), index("right finger")])
        for c, push in zip(d.contacts, d.pushes):
            with_thing = jnp.any(c.geoms == index("thing"), 1)
            of = jnp.any(c.geoms[:, None] == fingers[None, :, None], -1) & with_thing[:, None]
            pressed += jnp.sum(jnp.where(of, push[:, :1], 0), 0)
        return jnp.min(pressed)


def speed(driven: Driven) -> Array:
    """Of the thing's middle, [3] m/s; its freedoms begin where its coordinates do."""
    return driven.physics.qvel[OBJECT : OBJECT + 3]


def between_fingers(half: Array) -> Load:
    """A thing of half sizes [3] m, taken from above by its narrower side, its top in front of the
    palm.

    >>> load = between_fingers(jnp.array([0.05, 0.02, 0.04]))
    >>> [round(float(x), 3) for x in load.place], load.axes[1].tolist()
    ([0.01, 0.0, 0.0], [0.0, 1.0, 0.0])
    """
    down = jnp.asarray([-1.0, 0.0, 0.0], half.dtype)
    across, along = jnp.asarray([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], half.dtype)
    first = half[0] < half[1]
    axes = jnp.stack([jnp.where(first, across, along), jnp.where(first, -along, across), down])
    place = jnp.zeros_like(half).at[0].set(jnp.maximum(half[2] - GAP, 0.0))
    return Load(held=jnp.bool_(True), half=half, place=place, axes=axes)
