"""Base class of the tasks of Fetch in houses: state, observations, resets and time limits.

An observation is a vector. With a camera (`pixels`) it is a dictionary {"depth": [P, P, 1] in
0 ... 1 for 0 ... 10 m, "state": the vector without the privileged parts that need a map}. Lengths
are in m, in the frame of the base, x forward. The reward of a step is Phi before - Phi after plus
terms of the task, where Phi is the remaining path length of a state. Over an episode the difference
sums to Phi at the start - Phi at the end, independent of the path.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.render import Camera, depth_image

from ....environment import Step
from ....spaces import Box, Space, float_dtype
from ..house import House
from ..robot import contact
from ..robot.contact import Boxes
from ..robot.fetch import FRAMES, Frames, Joints, capsules, forward_kinematics, to_frame
from ..robot.movement import SWEPT_LINKS, Load, Movement, MoveResult
from ..robot.servos import Servos
from .episodes import Episodes, folded_joints
from .scene import HouseScene, make_scene, placed_solids

SENSE_RANGE = 0.3  # m, range in which elbow, wrist and hand sense boxes
SCAN_RANGE, SCAN_HEIGHT = 3.0, 0.2878  # m, range of the rays around the base, and their height
# Arm joints without and with limits. They are int32 because jax 0.12 caches the dtype of a module's
# array from a program of one precision for programs of the other.
ROLL_JOINTS, BEND_JOINTS = np.array([2, 4, 6], np.int32), np.array([0, 1, 3, 5], np.int32)
CAMERA_FOV, CAMERA_PITCH = (
    np.pi / 3,
    np.deg2rad(20.0),
)  # rad, field of view of the camera, and its downward tilt
MAX_DEPTH = 10.0  # m, range of the camera


@pytree
class State:
    """State of the robot, its load, and the object to fetch."""

    joints: Joints
    load: Load  # object in the hand
    thing: Array  # [3] center of the object, m
    thing_axes: Array  # [3, 3] its axes, one per row
    picked: Array  # [] bool: it has been in the hand
    episode: Array  # [] index of the episode
    left: Array  # [] remaining path length Phi, m
    t: Array  # [] steps since the start
    last: Array  # [] steps after which the episode is truncated
    left_out: Array  # [] boxes beyond the capacity, ignored, summed over all steps


@pytree
class HouseTask(ABC):
    """Base class of the tasks of Fetch in houses."""

    episodes: Episodes
    movement: Movement | Servos = Movement()
    max_steps: Array | int = number(default=500, least=1, whole=True, unit="steps")  # [] steps
    bonus: Array | float = number(default=10.0, least=0)  # [] reward for success
    slack: Array | float = number(default=0.0, least=0)  # [] cost per step
    way: Array | float = number(default=1.0, least=0)  # [] weight of the path over the floor
    rays: int = size(default=16, least=0)  # horizontal rays around the base that measure up to 3 m
    pixels: int = size(default=0, least=0)  # width and height of the camera's image; 0 for none

    differentiable = False  #: contact and grasping have no gradient

    @property
    @abstractmethod
    def action_space(self) -> Box:
        """Box of the robot's commands."""

    @property
    @abstractmethod
    def vector_size(self) -> int:
        """Length of the state vector, without rays and paths."""

    @property
    def privileged_size(self) -> int:
        """Length of the privileged observation and of the rays."""
        return 3 + self.rays + 3 * len(SWEPT_LINKS)

    @property
    def observation_space(self) -> Space | dict[str, Space]:
        """A vector, or with a camera an image and a vector without privileged parts and rays."""
        if not self.pixels:
            return Box(-np.inf, np.inf, (self.vector_size + self.privileged_size,))
        image = Box(0.0, 1.0, (self.pixels, self.pixels, 1))
        return {"depth": image, "state": Box(-np.inf, np.inf, (self.vector_size,))}

    def reset(self, key: Array) -> tuple[State, Any]:
        """Sample one of the episodes and one of its starting poses."""
        which, start = jax.random.split(key)
        made = self.episodes
        episode = jax.random.randint(which, (), 0, made.house.shape[0])
        base = made.starts[episode, jax.random.randint(start, (), 0, made.starts.shape[1])]
        joints = folded_joints(base.astype(float_dtype()))
        thing = self._object_row(episode)
        empty = Load(
            held=jnp.bool_(False),
            half=thing[3:6],
            place=jnp.zeros_like(thing[:3]),
            axes=jnp.eye(3, dtype=thing.dtype),
        )
        state = State(
            joints=joints,
            load=empty,
            thing=thing[:3],
            thing_axes=upright_axes(thing),
            picked=jnp.bool_(False),
            left=jnp.zeros_like(thing[0]),
            episode=episode,
            t=jnp.int32(0),
            last=jnp.asarray(self.max_steps, jnp.int32),
            left_out=jnp.int32(0),
        )
        frames = forward_kinematics(joints)
        state = self.prepare(state, frames)
        state = replace(state, left=self.left(state, frames))
        return state, self.observe(state, frames)

    def stagger(self, state: State, key: Array) -> State:
        """Return an initial state that is truncated earlier, by a random number of steps.

        Copies that start a training together then do not end their first episodes together.
        """
        early = jax.random.randint(key, (), 0, self.max_steps)
        return replace(state, last=state.last - early.astype(state.last.dtype))

    def prepare(self, state: State, frames: Frames) -> State:
        """Return the state before the first step; a task may put the object in the hand."""
        del frames
        return state

    @abstractmethod
    def left(self, state: State, frames: Frames) -> Array:
        """Return the remaining path length Phi, [] m."""

    @abstractmethod
    def vector(self, state: State, frames: Frames) -> list[Array]:
        """Return the parts of the state vector."""

    @abstractmethod
    def floor_path(self, state: State, x: Array) -> Array:
        """Return the path length over the floor from a position [2] to the current target, [] m."""

    def drive(self, state: State, action: Array) -> tuple[State, MoveResult]:
        """Move base, arm and load by the kinematic movement; return the new state and details."""
        if not isinstance(self.movement, Movement):
            raise TypeError(
                "step: movement simulates forces; this task takes a Movement; make the task whose "
                "name ends in -dynamic"
            )
        boxes = Boxes(self.episodes.boxes[self.house(state)].astype(state.thing.dtype))
        moved = self.movement.move(boxes, state.joints, state.load, action)
        left_out = state.left_out + moved.left_out.astype(state.left_out.dtype)
        state = replace(state, joints=moved.joints, left_out=left_out, t=state.t + 1)
        return state, moved

    def outcome(
        self,
        state: State,
        frames: Frames,
        success: Array,
        failure: Array,
        paid: Array | float = 0.0,
    ) -> Step:
        """Return the transition: terminated on success or failure, truncated by the time limit."""
        left = self.left(state, frames)
        reward = state.left - left + paid - self.slack + jnp.where(success, self.bonus, 0.0)
        state = replace(state, left=left)
        info = {
            "success": success,
            "failure": failure,
            "left": left,
            "left_out": state.left_out,
        }
        return Step(
            state=state,
            observation=self.observe(state, frames),
            reward=reward.astype(state.thing.dtype),
            terminated=success | failure,
            truncated=state.t >= state.last,
            info=info,
        )

    def observe(self, state: State, frames: Frames) -> Any:
        """Return the observation vector, or the image and the state vector."""
        parts = self.vector(state, frames)
        if self.pixels:
            solids = placed_solids(self.house_at(state), state, self.episodes.target[state.episode])
            depth = depth_image(self.camera(frames), solids, far=MAX_DEPTH).astype(
                state.thing.dtype
            )
            return {"depth": depth[..., None] / MAX_DEPTH, "state": jnp.concatenate(parts)}
        return jnp.concatenate([*parts, *self.privileged_obs(state, frames)])

    def privileged_obs(self, state: State, frames: Frames) -> list[Array]:
        """Return the parts of the observation that need a map, and the rays around the base."""
        return [self._floor_route(state), self._scan_ranges(state), self._proximity(state, frames)]

    def camera(self, frames: Frames) -> Camera:
        """Return the head camera, which looks forward, 20 degrees down, with 60 degrees of view."""
        origin, (ahead, _, up) = frames.origin[FRAMES.index("camera")], frames.axes[0]
        sight = np.cos(CAMERA_PITCH) * ahead - np.sin(CAMERA_PITCH) * up
        return Camera(origin, origin + sight, up, CAMERA_FOV, width=self.pixels, height=self.pixels)

    def floor(self, state: State) -> Array:
        """Return the weighted path length over the floor, [] m."""
        return self.way * self.floor_path(state, state.joints.base[:2])

    def house(self, state: State) -> Array:
        """Return the index of the episode's house, []."""
        return self.episodes.house[state.episode]

    def house_at(self, state: State) -> House:
        """Return the house of the episode."""
        return jax.tree.map(lambda x: x[self.house(state)], self.episodes.houses)

    def scene(self, state: State) -> HouseScene:
        """Return the house without its ceiling, the robot and the goal, for rendering."""
        goal = self.episodes.goal[state.episode].astype(state.thing.dtype)
        return make_scene(self.house_at(state), state, goal, self.episodes.target[state.episode])

    def to_base_frame(self, frames: Frames, x: Array) -> Array:
        """Rotate a world vector [3] into the frame of the base."""
        return to_frame(frames.axes[0], x)

    def clock(self, state: State) -> Array:
        """Return the remaining fraction of the steps, and 5 and 50 times it, clipped to 1: [3]."""
        left = jnp.maximum(1 - state.t / self.max_steps, 0).astype(state.thing.dtype)
        return jnp.stack([left, jnp.minimum(5 * left, 1), jnp.minimum(50 * left, 1)])

    def _object_row(self, episode: Array) -> Array:
        made = self.episodes
        return made.things[made.house[episode], made.target[episode]].astype(float_dtype())

    def _floor_route(self, state: State) -> Array:
        """Return path length over the floor and its descent direction in the base frame, [3]."""
        x, y, yaw = state.joints.base
        path_length = lambda dx, dy: self.floor_path(state, jnp.stack([x + dx, y + dy]))
        d = 0.2
        gx, gy = (
            path_length(-d, 0.0) - path_length(d, 0.0),
            path_length(0.0, -d) - path_length(0.0, d),
        )
        long = jnp.maximum(jnp.sqrt(gx**2 + gy**2), d)
        gx, gy, c, s = gx / long, gy / long, jnp.cos(yaw), jnp.sin(yaw)
        return jnp.stack([path_length(0.0, 0.0), c * gx + s * gy, c * gy - s * gx])

    def _proximity(self, state: State, frames: Frames) -> Array:
        """Return vectors [9] out of the boxes next to elbow, wrist, hand; 0 from `SENSE_RANGE`."""
        boxes = Boxes(self.episodes.boxes[self.house(state)].astype(state.thing.dtype))

        def escape_vector(x: Array) -> Array:
            far = contact.point_distances(boxes, x)
            nearest = jnp.argmin(far)
            out = contact.exit_direction(Boxes(boxes.rows[nearest]), x, x)
            return self.to_base_frame(frames, out) * jnp.maximum(1 - far[nearest] / SENSE_RANGE, 0)

        return jnp.concatenate([escape_vector(x) for x in capsules(frames)[1][SWEPT_LINKS]])

    def _scan_ranges(self, state: State) -> Array:
        """Return the ranges of horizontal rays around the base, [rays], 1 for 3 m or more."""
        if not self.rays:
            return jnp.zeros(0, state.thing.dtype)
        x, y, yaw = state.joints.base
        angle = yaw + jnp.asarray(np.arange(self.rays) * 2 * np.pi / self.rays, yaw.dtype)
        boxes = Boxes(self.episodes.boxes[self.house(state)].astype(yaw.dtype))
        eye = jnp.stack([x, y, jnp.full_like(x, SCAN_HEIGHT)])
        return (
            contact.ray_lengths(boxes, eye, (jnp.cos(angle), jnp.sin(angle)), SCAN_RANGE)
            / SCAN_RANGE
        )


def upright_axes(row: Array) -> Array:
    """Return the axes [3, 3] of a row of `Boxes`, rotated about the vertical."""
    c, s, zero = row[6], row[7], jnp.zeros_like(row[6])
    one = jnp.ones_like(zero)
    return jnp.stack([jnp.stack(a) for a in ((c, s, zero), (-s, c, zero), (zero, zero, one))])
