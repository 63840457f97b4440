"""Shared parts of the tasks that pick an object up in a house, bring it to its goal, or both.

After Galactic's abstraction (Berges et al. 2023, arXiv:2306.07552). The first component of an
action is the grip. Above .5 an empty hand grasps the object whose box is nearest to its grasp ball,
if they touch; below -.5 the hand releases. A held object is rigid to the gripper and must not
penetrate the house; the hand passes through small objects that it does not hold. An object is
placed, and sinks onto its goal, if it is released within `threshold` of the goal horizontally and
at most `height` above it. Releasing it elsewhere is a bad drop; grasping another object fails.
"""

from abc import abstractmethod
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.fields import number, pytree, static

from ....environment import Step, check_actions
from ....spaces import Box
from .. import hand_paths
from ..robot import contact
from ..robot.contact import Boxes
from ..robot.fetch import Frames, to_frame, to_world
from ..robot.movement import Load, load_pose
from ..robot.reachability import GRASP_RADIUS, grip_center
from .episodes import hand_load
from .task import BEND_JOINTS, ROLL_JOINTS, HouseTask, State, upright_axes

MIN_STEPS = 5  # steps before which the end action is ignored
FINE_SCALE = 0.3  # m, length scale of the fine offset from the hand to the object
DROP_MARGIN = 0.02  # m, that an object may be below its goal when released


@pytree
class CarryTask(HouseTask):
    """Base class of the carrying tasks. An action [10] holds grip, turn, forward, and arm joints.

    The state vector holds, in this order: robot to object, hand to object, the same divided by the
    larger of its length and `FINE_SCALE`, robot to hand, the pointing direction of the hand, robot
    to goal, hand to goal [3 each], holding [1], arm joints with limits [4], cosines and sines of
    the continuous ones [6], and the clock [3].
    """

    near: Array | float = number(
        default=1.5, above=0, infinite=True, unit="m"
    )  # [] cap on the path lengths of hand and object, m
    pick_bonus: Array | float = number(default=5.0, least=0)  # [] reward for the first grasp
    threshold: Array | float = number(default=0.15, above=0, unit="m")  # [] horizontally, m
    height: Array | float = number(default=0.3, above=0, unit="m")  # [] above the goal, m
    crowded: bool = static(default=True)  # other objects can be grasped too
    straight: bool = static(default=False)  # paths are straight, even through boards

    @property
    def action_space(self) -> Box:
        """Box of grip, turn, forward and joints, as fractions of the maximum step."""
        return Box(-1.0, 1.0, (10,))

    @property
    def vector_size(self) -> int:
        """Length of the state vector, see the class."""
        return 35

    @property
    def privileged_size(self) -> int:
        """Length of the privileged observation including `near_path`."""
        return super().privileged_size + 4

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Drive the base and move the arm, then grasp or release."""
        del key
        action = jnp.clip(action, -1, 1)
        after, moved = self.drive(state, action[1:10])
        frames = moved.frames
        middle, axes = load_pose(frames, after.load)
        held = after.load.held
        thing = jnp.where(held, middle, after.thing)
        after = replace(after, thing=thing, thing_axes=jnp.where(held, axes, after.thing_axes))
        right, wrong = self._try_grasp(after, frames, (action[0] > 0.5) & ~held)
        placed = self.is_placed(after)
        lets = held & (action[0] < -0.5)
        lets = lets & placed if self.keeps_object else lets
        after = self._attach_object(after, frames, right)
        after = self._release_object(after, lets, placed)
        done, failed = self.ends(state, after, action, lets & placed)
        failed = (failed | wrong | (lets & ~placed)) & ~done
        first = right & ~state.picked
        paid = jnp.where(first, self.pick_bonus, 0.0)
        return self.outcome(after, frames, done, failed, paid)

    @property
    @abstractmethod
    def keeps_object(self) -> bool:
        """True if the hand refuses to release the object where that would be a bad drop."""

    @abstractmethod
    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Return success and failure after a step, [] bool; `placed`: it placed the object."""

    def is_placed(self, state: State) -> Array:
        """Return whether the object is where it may be released, [] bool."""
        off = state.thing - self.goal(state)
        flat = jnp.sqrt(off[0] ** 2 + off[1] ** 2)
        return (flat < self.threshold) & (off[2] > -DROP_MARGIN) & (off[2] < self.height)

    def goal(self, state: State) -> Array:
        """Return the goal position of the object's center, [3] m."""
        return self.episodes.goal[state.episode].astype(state.thing.dtype)

    def floor_path(self, state: State, x: Array) -> Array:
        """Return the path length to the object, or to the goal once the object was picked."""
        made, e = self.episodes, state.episode
        ways = (made.path_length(field, e, x) for field in (made.to_goal, made.to_target))
        return jnp.where(state.picked, *ways)

    def near_path(self, state: State, frames: Frames) -> tuple[Array, Array]:
        """Return the remaining path length through free space, [] m, and its gradient, [3].

        It is the path of the hand to the object, and after picking that of the object to its goal.
        """
        return jax.tree.map(
            lambda a, b: jnp.where(state.picked, a, b),
            self.object_path(state, state.thing),
            self.hand_path(state, frames),
        )

    def hand_path(self, state: State, frames: Frames) -> tuple[Array, Array]:
        """Return the path length of the hand to the object, [] m, and its gradient, [3]."""
        x = grip_center(frames) - state.thing
        return self._interpolate_path("near_target", state, x, self._offset_from_box(state, x))

    def object_path(self, state: State, place: Array) -> tuple[Array, Array]:
        """Return the object's path length from a position [3] to its goal, and its gradient [3]."""
        x = place - self.goal(state)
        return self._interpolate_path("near_goal", state, x, x)

    def privileged_obs(self, state: State, frames: Frames) -> list[Array]:
        """Return the privileged observation plus `near_path`: path length and descent direction."""
        left, slope = self.near_path(state, frames)
        told = [jnp.minimum(left, self.near)[None], self.to_base_frame(frames, -slope)]
        return [*super().privileged_obs(state, frames), *told]

    def vector(self, state: State, frames: Frames) -> list[Array]:
        """Return the parts of the state vector, in the order of the class docstring."""
        base, hand = state.joints.base.at[2].set(0.0), grip_center(frames)
        goal, arm = self.goal(state), state.joints.arm
        off = state.thing - hand
        fine = off / jnp.maximum(rows.length(off), FINE_SCALE)
        to_goal = (goal - base, goal - hand)
        ways = (state.thing - base, off, fine, hand - base, frames.axes[-1, 0], *to_goal)
        parts = [self.to_base_frame(frames, x) for x in ways]
        rolls = arm[ROLL_JOINTS]
        parts += [state.load.held.astype(arm.dtype)[None], arm[BEND_JOINTS], jnp.cos(rolls)]
        return [*parts, jnp.sin(rolls), self.clock(state)]

    def _interpolate_path(
        self, name: str, state: State, x: Array, over: Array
    ) -> tuple[Array, Array]:
        """Return `path_length` in the field `name`, or length and direction of the line."""
        if self.straight:
            return rows.length(x), hand_paths.unit_vector(x)
        ways = getattr(self.episodes, name)
        if ways is None:
            raise ValueError(
                f"{type(self).__name__}: episodes have no {name}, like those of "
                "tasks.visit_episodes; make them by tasks.fetch_episodes or tasks.grasp_episodes"
            )
        return hand_paths.path_length(ways, state.episode, x, over)

    def _offset_from_box(self, state: State, x: Array) -> Array:
        """Return the vector from the object's box to a point `x` relative to its center, [3] m."""
        own = to_frame(state.thing_axes, x)
        return to_world(state.thing_axes, own - jnp.clip(own, -state.load.half, state.load.half))

    def _try_grasp(self, state: State, frames: Frames, tries: Array) -> tuple[Array, Array]:
        """Return whether the hand grasps the object, and whether it grasps another one, [] bool."""
        at = grip_center(frames)
        own = rows.length(self._offset_from_box(state, at - state.thing))
        house, target = self.house(state), self.episodes.target[state.episode]
        things = self.episodes.things[house].astype(at.dtype)
        away = contact.point_distances(Boxes(things), at).at[target].set(own)
        nearest = jnp.min(away) if self.crowded else own
        meets = tries & (nearest <= GRASP_RADIUS)
        return meets & (own <= nearest), meets & (own > nearest)

    def _attach_object(self, state: State, frames: Frames, taken: Array) -> State:
        """Attach the object rigidly to the gripper if `taken`."""
        hand, turn = frames.origin[-1], frames.axes[-1]
        place = to_frame(turn, state.thing - hand)
        axes = to_frame(turn[None], state.thing_axes)
        load = Load(
            held=state.load.held | taken,
            half=state.load.half,
            place=jnp.where(taken, place, state.load.place),
            axes=jnp.where(taken, axes, state.load.axes),
        )
        return replace(state, load=load, picked=state.picked | taken)

    def _release_object(self, state: State, lets: Array, placed: Array) -> State:
        """Empty the hand if `lets`; a placed object sinks upright to the height of its goal."""
        sinks = lets & placed
        low = state.thing.at[2].set(self.goal(state)[2])
        x = state.thing_axes[0]
        turn = jnp.concatenate([jnp.zeros(6, x.dtype), rows.unit(x[:2] + 1e-6)])
        return replace(
            state,
            load=replace(state.load, held=state.load.held & ~lets),
            thing=jnp.where(sinks, low, state.thing),
            thing_axes=jnp.where(sinks, upright_axes(turn), state.thing_axes),
        )


def hold_object(state: State, frames: Frames) -> State:
    """Return the state with the object in the hand."""
    half = state.load.half
    state = replace(state, load=hand_load(half), picked=jnp.bool_(True))
    middle, axes = load_pose(frames, state.load)
    return replace(state, thing=middle, thing_axes=axes)


def path_to_object(task: CarryTask, state: State, frames: Frames) -> Array:
    """Return the path lengths of the base over the floor and of the hand to the object, [] m."""
    return task.floor(state) + jnp.minimum(task.hand_path(state, frames)[0], task.near)


def path_to_goal(task: CarryTask, state: State) -> Array:
    """Return the path lengths of the base over the floor and of the object to its goal, [] m."""
    return task.floor(state) + jnp.minimum(task.object_path(state, state.thing)[0], task.near)
