"""What the tasks of Fetch in houses share: state, observations, starts, and how long they last.

An observation is a vector; with a camera (`pixels`) it is a dictionary {"depth": [P, P, 1] in
0 ... 1 for 0 ... 10 m, "state": the vector without what only a map could tell}. Lengths are in m,
in the frame of the base, x ahead. A task pays for the way that is left getting shorter: with the
way Phi of a state the reward of a step is Phi before - Phi after + what the task adds, so that over
an episode the first two sum to Phi at the start - Phi at the end, whatever the path.
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
from ....spaces import Box, Space, real
from ..house import House
from ..robot import contact
from ..robot.contact import Boxes
from ..robot.fetch import FRAMES, Frames, Joints, capsules, forward_kinematics, in_frame
from ..robot.movement import SWEPT, Load, Moved, Movement
from ..robot.servos import Servos
from .episodes import Episodes, folded
from .scene import Furnished, furnished, placed_solids

FELT = 0.3  # m, within which elbow, wrist and hand feel boxes
SCAN, SCAN_HEIGHT = 3.0, 0.2878  # m, range of the rays around the base, and their height
# joints without and with limits. Whole numbers of 32 bits: jax 0.12 keeps the type that an array of
# the module had in a program of the one precision for programs of the other
ROLLS, BENDS = np.array([2, 4, 6], np.int32), np.array([0, 1, 3, 5], np.int32)
VIEW, DIP = (
    np.pi / 3,
    np.deg2rad(20.0),
)  # rad, field of view of the camera, and how far it looks down
FAR = 10.0  # m, what the camera sees at most


@pytree
class State:
    """A robot, what it carries, and the thing that is to be fetched."""

    joints: Joints
    load: Load  # what the hand holds
    thing: Array  # [3] middle of the thing, m
    thing_axes: Array  # [3, 3] its axes, one a row
    picked: Array  # [] bool: it has been in the hand
    episode: Array  # [] which of the episodes
    left: Array  # [] the way Phi that is left, m
    t: Array  # [] steps since the start
    last: Array  # [] steps after which the clock cuts
    left_out: Array  # [] boxes, over all steps, that were too many to be looked at


@pytree
class HouseTask(ABC):
    """Fetch in houses."""

    episodes: Episodes
    movement: Movement | Servos = Movement()
    max_steps: Array | int = number(default=500, least=1, whole=True, unit="steps")  # [] steps
    bonus: Array | float = number(default=10.0, least=0)  # [] for success
    slack: Array | float = number(default=0.0, least=0)  # [] what a step costs
    way: Array | float = number(default=1.0, least=0)  # [] weight of the way over the floor
    rays: int = size(default=16, least=0)  # around the base, level, that feel up to 3 m far
    pixels: int = size(default=0, least=0)  # of the camera's image along each side; 0 for none

    differentiable = False  #: contact and grasping have no slope

    @property
    @abstractmethod
    def action_space(self) -> Box:
        """What the robot may be told."""

    @property
    @abstractmethod
    def vector_size(self) -> int:
        """Numbers of the vector of a state, without rays and ways."""

    @property
    def told_size(self) -> int:
        """Numbers of what only a map could tell, and of rays."""
        return 3 + self.rays + 3 * len(SWEPT)

    @property
    def observation_space(self) -> Space | dict[str, Space]:
        """A vector, or with a camera its image and a vector that knows no way and feels no ray."""
        if not self.pixels:
            return Box(-np.inf, np.inf, (self.vector_size + self.told_size,))
        image = Box(0.0, 1.0, (self.pixels, self.pixels, 1))
        return {"depth": image, "state": Box(-np.inf, np.inf, (self.vector_size,))}

    def reset(self, key: Array) -> tuple[State, Any]:
        """One of the episodes, from one of its starts."""
        which, start = jax.random.split(key)
        made = self.episodes
        episode = jax.random.randint(which, (), 0, made.house.shape[0])
        base = made.starts[episode, jax.random.randint(start, (), 0, made.starts.shape[1])]
        joints = folded(base.astype(real()))
        thing = self._thing(episode)
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
            thing_axes=upright(thing),
            picked=jnp.bool_(False),
            left=jnp.zeros_like(thing[0]),
            episode=episode,
            t=jnp.int32(0),
            last=jnp.asarray(self.max_steps, jnp.int32),
            left_out=jnp.int32(0),
        )
        frames = forward_kinematics(joints)
        state = self.prepared(state, frames)
        state = replace(state, left=self.left(state, frames))
        return state, self.observe(state, frames)

    def stagger(self, state: State, key: Array) -> State:
        """A first state whose clock cuts earlier by a random number of steps.

        Copies that begin a training together then do not end their first episodes together.
        """
        early = jax.random.randint(key, (), 0, self.max_steps)
        return replace(state, last=state.last - early.astype(state.last.dtype))

    def prepared(self, state: State, frames: Frames) -> State:
        """The state before the first step: as it is, unless a task begins with a thing in hand."""
        del frames
        return state

    @abstractmethod
    def left(self, state: State, frames: Frames) -> Array:
        """The way Phi that is left, [] m."""

    @abstractmethod
    def vector(self, state: State, frames: Frames) -> list[Array]:
        """What is observed of a state, in parts."""

    @abstractmethod
    def away(self, state: State, x: Array) -> Array:
        """The way over the floor from a place [2] to where the robot has to go now, [] m."""

    def drive(self, state: State, action: Array) -> tuple[State, Moved]:
        """The state after the base and the arm have moved, and what they carry with them."""
        if not isinstance(self.movement, Movement):
            raise TypeError(
                "step: movement is of forces; a task without them takes a Movement; make the "
                "task by its name with -dynamic"
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
        """What a step led to: over at success or failure, and cut by the clock."""
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
        """The vector, or the image and a vector."""
        parts = self.vector(state, frames)
        if self.pixels:
            solids = placed_solids(self.house_at(state), state, self.episodes.target[state.episode])
            depth = depth_image(self.camera(frames), solids, far=FAR).astype(state.thing.dtype)
            return {"depth": depth[..., None] / FAR, "state": jnp.concatenate(parts)}
        return jnp.concatenate([*parts, *self.told(state, frames)])

    def told(self, state: State, frames: Frames) -> list[Array]:
        """What only a map could tell, and what rays around the base feel, in parts."""
        return [self._route(state), self._scan(state), self._felt(state, frames)]

    def camera(self, frames: Frames) -> Camera:
        """The camera of the head, which looks ahead and 20 degrees down, 60 degrees wide."""
        origin, (ahead, _, up) = frames.origin[FRAMES.index("camera")], frames.axes[0]
        sight = np.cos(DIP) * ahead - np.sin(DIP) * up
        return Camera(origin, origin + sight, up, VIEW, width=self.pixels, height=self.pixels)

    def floor(self, state: State) -> Array:
        """The way over the floor, with its weight, [] m."""
        return self.way * self.away(state, state.joints.base[:2])

    def house(self, state: State) -> Array:
        """Which house the episode is in, []."""
        return self.episodes.house[state.episode]

    def house_at(self, state: State) -> House:
        """The house of the episode."""
        return jax.tree.map(lambda x: x[self.house(state)], self.episodes.houses)

    def scene(self, state: State) -> Furnished:
        """The house without its ceiling, the robot and the goal, for pictures."""
        goal = self.episodes.goal[state.episode].astype(state.thing.dtype)
        return furnished(self.house_at(state), state, goal, self.episodes.target[state.episode])

    def local(self, frames: Frames, x: Array) -> Array:
        """A vector of space [3] in the frame of the base."""
        return in_frame(frames.axes[0], x)

    def clock(self, state: State) -> Array:
        """The share of the steps that is left, and 5 and 50 times it, at most 1 each: [3]."""
        left = jnp.maximum(1 - state.t / self.max_steps, 0).astype(state.thing.dtype)
        return jnp.stack([left, jnp.minimum(5 * left, 1), jnp.minimum(50 * left, 1)])

    def _thing(self, episode: Array) -> Array:
        made = self.episodes
        return made.things[made.house[episode], made.target[episode]].astype(real())

    def _route(self, state: State) -> Array:
        """How far it is over the floor, and the direction in which it gets shorter, [3]."""
        x, y, yaw = state.joints.base
        way = lambda dx, dy: self.away(state, jnp.stack([x + dx, y + dy]))
        d = 0.2
        gx, gy = way(-d, 0.0) - way(d, 0.0), way(0.0, -d) - way(0.0, d)
        long = jnp.maximum(jnp.sqrt(gx**2 + gy**2), d)
        gx, gy, c, s = gx / long, gy / long, jnp.cos(yaw), jnp.sin(yaw)
        return jnp.stack([way(0.0, 0.0), c * gx + s * gy, c * gy - s * gx])

    def _felt(self, state: State, frames: Frames) -> Array:
        """The ways from the boxes nearest to elbow, wrist and hand, [9]: 0 from `FELT`, 1 there."""
        boxes = Boxes(self.episodes.boxes[self.house(state)].astype(state.thing.dtype))

        def way(x: Array) -> Array:
            far = contact.point(boxes, x)
            nearest = jnp.argmin(far)
            out = contact.way_out(Boxes(boxes.rows[nearest]), x, x)
            return self.local(frames, out) * jnp.maximum(1 - far[nearest] / FELT, 0)

        return jnp.concatenate([way(x) for x in capsules(frames)[1][SWEPT]])

    def _scan(self, state: State) -> Array:
        """How far level rays around the base reach, [rays], 1 for 3 m or more."""
        if not self.rays:
            return jnp.zeros(0, state.thing.dtype)
        x, y, yaw = state.joints.base
        angle = yaw + jnp.asarray(np.arange(self.rays) * 2 * np.pi / self.rays, yaw.dtype)
        boxes = Boxes(self.episodes.boxes[self.house(state)].astype(yaw.dtype))
        eye = jnp.stack([x, y, jnp.full_like(x, SCAN_HEIGHT)])
        return contact.rays(boxes, eye, (jnp.cos(angle), jnp.sin(angle)), SCAN) / SCAN


def upright(row: Array) -> Array:
    """The axes [3, 3] of a row of boxes, turned about the vertical."""
    c, s, zero = row[6], row[7], jnp.zeros_like(row[6])
    one = jnp.ones_like(zero)
    return jnp.stack([jnp.stack(a) for a in ((c, s, zero), (-s, c, zero), (zero, zero, one))])
