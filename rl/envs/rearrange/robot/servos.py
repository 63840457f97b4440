"""Dynamics of Fetch and the object that it handles: servos, masses and contact.

Commands are those of `movement`, fractions of the maximum step of base and arm, and the grip. They
move the targets of servos uniformly over a step of 0.15 s, in which the base moves at most 0.67 m/s
and a joint 1.3 rad/s. The servos drive bodies with masses, which collide with the boxes of the
house by MuJoCo's contacts. So the robot is held up, pushes and slides, and friction holds an object
between the fingers, or lets it slip. As in `movement`, other small objects do not collide, nor do
links of the robot with each other.
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
from jaxgpu.physics.rigid.models.source import compile_model

from . import fetch, mechanism, surroundings
from .contact import Boxes
from .fetch import Frames, Joints, forward_kinematics
from .mechanism import MAX_OPENING
from .movement import Load, load_pose

MAX_LEAD = 0.4  # rad, maximum lead of an arm joint's target over the joint
PALM_GAP = 0.03  # m, of the palm behind the center of the fingers
SQUEEZE = 0.01  # m, past the center, of the target of each closing finger
MIN_GRIP = 1.0  # N per finger, at which an object counts as held
PLANE, TORSO, ARM, FINGERS, OBJECT = slice(3), 3, slice(4, 11), slice(11, 13), 13  # slices of qpos


@pytree
class ServoState:
    """State of the dynamics, and the targets of the servos."""

    physics: forward.State  # state of the model
    arm: Array  # [7] rad, targets of the arm's servos
    torso: Array  # [] m
    open: Array  # [] m, target of each finger
    press: Array  # [] N, force of the finger that presses less on the object


class ServoResult(NamedTuple):
    """Result of a step."""

    driven: ServoState
    joints: Joints
    frames: Frames
    thing: Array  # [3] m, center of the object
    axes: Array  # [3, 3] its axes, one per row
    left_out: Array  # [] boxes and contacts in range beyond the capacity


def load_model(iterations: int = 8) -> Model:
    """Return the model of robot, boxes and object, at the current default precision.

    >>> load_model().layout.nv
    19
    """
    return load(_compile_model(), contacts=24, iterations=iterations)


@functools.cache
def _compile_model() -> Any:
    return compile_model(mechanism.mjcf_text())


@pytree
class Servos:
    """Step sizes of the servo targets, and the density of the object.

    >>> import jax.numpy as jnp
    >>> start = Joints(jnp.zeros(3), jnp.float32(0.386), jnp.zeros(2), jnp.zeros(7))
    >>> servos, half = Servos(), jnp.full(3, 0.03)
    >>> driven = servos.begin(start, jnp.array([2.0, 0.0, 0.5]), jnp.eye(3), 0.05)
    >>> driven.physics.qpos.shape
    (20,)
    """

    model: Model = dataclasses.field(default_factory=load_model)  # its numeric fields are leaves
    max_turn: Array | float = number(
        default=0.0873, above=0, most=np.pi, unit="rad"
    )  # [] of the base per step
    max_forward: Array | float = number(default=0.1, above=0, unit="m")  # [] of the base per step
    max_joint: Array | float = number(
        default=0.196, above=0, most=np.pi, unit="rad"
    )  # [] of the arm per step
    density: Array | float = number(default=300.0, above=0, unit="kg/m^3")  # [] of the object
    substeps: int = size(default=30, least=1)  # model steps per step of the task

    def begin(
        self, joints: Joints, thing: Array, axes: Array, fingers: Array | float
    ) -> ServoState:
        """Initialize the dynamics at rest in a given pose.

        Args:
            joints: of the robot.
            thing: center of the object, [3] m.
            axes: its axes, one per row, [3, 3].
            fingers: distance of each finger from the center, m.
        """
        turn = rotations.from_matrix(axes.T)
        fingers = jnp.full(2, fingers, thing.dtype)
        parts = [joints.base, joints.torso[None], joints.arm, fingers, thing, turn]
        return ServoState(
            physics=self.model.init(jnp.concatenate(parts)),
            arm=joints.arm,
            torso=joints.torso,
            open=fingers[0],
            press=jnp.zeros_like(fingers[0]),
        )

    def init_holding(self, joints: Joints, load: Load) -> tuple[ServoState, Array, Array]:
        """Initialize with the object in the hand; also return its center, [3] m, and axes."""
        thing, axes = load_pose(forward_kinematics(joints), load)
        narrow = jnp.minimum(jnp.minimum(load.half[0], load.half[1]), MAX_OPENING)
        driven = self.begin(joints, thing, axes, narrow)
        return replace(driven, open=jnp.full_like(driven.open, -SQUEEZE)), thing, axes

    def move(self, boxes: Boxes, driven: ServoState, half: Array, action: Array) -> ServoResult:
        """Advance one step among boxes [K].

        Args:
            boxes: obstacles.
            driven: state before the step.
            half: half sizes of the object, [3] m.
            action: [10], clipped to -1 ... 1: the grip (above .5 the fingers close, below -.5 they
                open), turn and forward of the base, and the arm's joints.

        Raises:
            ValueError: sizes or an action of the wrong shape or not finite, or a size that is not
                above 0.
        """
        q = driven.physics.qpos
        half = jnp.asarray(numbers("Servos.move: half", half, (3,), above=0), q.dtype)
        action = jnp.asarray(numbers("Servos.move: action", action, (10,)), q.dtype)
        action = jnp.clip(action, -1, 1)
        told = jnp.clip(
            driven.arm + self.max_joint * action[3:], q[ARM] - MAX_LEAD, q[ARM] + MAX_LEAD
        )
        told = jnp.clip(told, *fetch.limits(q.dtype))
        wide = jnp.where(action[0] < -0.5, MAX_OPENING, driven.open)
        wide = jnp.where(action[0] > 0.5, -SQUEEZE, wide)
        model, left_out = self.local_model(boxes, driven, half, told)
        seconds = self._step_duration()
        ahead, turn = self.max_forward * action[2] / seconds, self.max_turn * action[1] / seconds
        none = jnp.zeros_like(driven.physics.qvel)

        def substep(known: tuple, part: Array) -> tuple[tuple, None]:
            physics, _ = known
            yaw = physics.qpos[2]
            base = jnp.stack([ahead * jnp.cos(yaw), ahead * jnp.sin(yaw), turn, driven.torso])
            arm = driven.arm + part * (told - driven.arm)
            ctrl = jnp.concatenate([base, arm, jnp.stack([wide, wide])])
            return integrators.step_and_look(model, physics, ctrl, none, self._grip_force), None

        parts = jnp.arange(1, self.substeps + 1, dtype=q.dtype) / self.substeps
        (physics, press), _ = lax.scan(substep, (driven.physics, driven.press), parts)
        after = replace(driven, physics=physics, arm=told, open=wide, press=press)
        joints, thing, axes = self.read(after)
        more = physics.overflow - driven.physics.overflow
        return ServoResult(after, joints, forward_kinematics(joints), thing, axes, left_out + more)

    def read(self, driven: ServoState) -> tuple[Joints, Array, Array]:
        """Return the joints, and the object's center [3] m and axes [3, 3]."""
        q = driven.physics.qpos
        head = jnp.asarray([0.0, fetch.HEAD_DOWN], q.dtype)
        joints = Joints(base=q[PLANE], torso=q[TORSO], head=head, arm=q[ARM])
        turn = rotations.matrix(q[OBJECT + 3 :])
        columns = [jnp.stack(row) for row in turn]
        return joints, q[OBJECT : OBJECT + 3], jnp.stack(columns, 1)

    def local_model(
        self, boxes: Boxes, driven: ServoState, half: Array, told: Array
    ) -> tuple[Model, Array]:
        """Return the model with the nearby boxes and the object, and the number of boxes left out.

        Args:
            boxes: obstacles, [K].
            driven: state of robot and object.
            half: half sizes of the object, [3] m.
            told: targets of the arm at the end of the step, [7] rad.
        """
        joints, thing, _ = self.read(driven)
        arrived = replace(joints, arm=told)
        times = jnp.asarray([0.0, 0.5, 1.0], thing.dtype)[:, None] * self._step_duration()
        falls = self.model.option.gravity[None] * times**2 / 2
        flight = thing[None] + object_velocity(driven)[None] * times + falls
        near, left_out = surroundings.nearby_boxes(
            boxes, (joints, arrived), flight, half, self.max_forward
        )
        return surroundings.with_boxes(self.model, near, half, self.density), left_out

    def _step_duration(self) -> Array:
        """Return the duration of a step, s."""
        return self.substeps * self.model.option.timestep

    def _grip_force(self, d: forward.Dynamics) -> Array:
        """Return the smaller of the two fingers' normal forces on the object, N."""
        pressed = jnp.zeros(2, d.qacc.dtype)
        index = lambda name: self.model.index("geom", name)
        fingers = np.array([index("left finger"), index("right finger")])
        for c, push in zip(d.contacts, d.pushes):
            with_thing = jnp.any(c.geoms == index("thing"), 1)
            of = jnp.any(c.geoms[:, None] == fingers[None, :, None], -1) & with_thing[:, None]
            pressed += jnp.sum(jnp.where(of, push[:, :1], 0), 0)
        return jnp.min(pressed)


def object_velocity(driven: ServoState) -> Array:
    """Return the velocity of the object's center, [3] m/s."""
    return driven.physics.qvel[OBJECT : OBJECT + 3]


def finger_load(half: Array) -> Load:
    """Return an object of half sizes [3] m, grasped from above by its narrower side.

    Its top is in front of the palm.

    >>> load = finger_load(jnp.array([0.05, 0.02, 0.04]))
    >>> [round(float(x), 3) for x in load.place], load.axes[1].tolist()
    ([0.01, 0.0, 0.0], [0.0, 1.0, 0.0])
    """
    down = jnp.asarray([-1.0, 0.0, 0.0], half.dtype)
    across, along = jnp.asarray([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], half.dtype)
    first = half[0] < half[1]
    axes = jnp.stack([jnp.where(first, across, along), jnp.where(first, -along, across), down])
    place = jnp.zeros_like(half).at[0].set(jnp.maximum(half[2] - PALM_GAP, 0.0))
    return Load(held=jnp.bool_(True), half=half, place=place, axes=axes)
