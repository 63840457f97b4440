"""Pick a thing up in a house, bring it to its goal, or both: what these tasks share.

After Galactic's abstraction (Berges et al. 2023, arXiv:2306.07552). The first number of an action
is the grip: above .5 an empty hand takes the thing whose box is nearest to the ball in which it
grasps, if it meets it; below -.5 it lets go. What is held is rigid to the gripper and must not lie
in the house; the hand goes through small things that it does not hold. Where the thing is let go
within `threshold` of its goal in the plane, and not more than `height` above it, it is placed, and
sinks on it; elsewhere that is a bad drop. To hold another thing is a failure.
"""

from abc import abstractmethod
from dataclasses import replace

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.fields import number, pytree, static

from ....environment import Step, whole_actions
from ....spaces import Box
from .. import approach
from ..robot import contact
from ..robot.contact import Boxes
from ..robot.fetch import Frames, in_frame, in_space
from ..robot.grasps import TOUCH, grip
from ..robot.movement import Load, loaded
from .episodes import in_hand
from .task import BENDS, ROLLS, HouseTask, State, upright

SOON = 5  # steps, before which the end action does not count
CLOSE = 0.3  # m, within which the hand is told more finely where the thing is
BELOW = 0.02  # m, that a thing may be let go below its place


@pytree
class Carry(HouseTask):
    """An action is the grip, turn and forward of the base, and the arm's seven joints; [10].

    The vector of a state: robot to thing, hand to thing, the same in units of its length or of
    `CLOSE`, whichever is longer, robot to hand, where the hand points, robot to goal, hand to goal
    [3 each], holding [1], the joints that have limits [4], cosines and sines of those that roll
    [6], and the clock [3].
    """

    near: Array | float = number(
        default=1.5, above=0, infinite=True, unit="m"
    )  # [] at most, that ways of the hand and of the thing count, m
    pick_bonus: Array | float = number(default=5.0, least=0)  # [] for the first time in the hand
    threshold: Array | float = number(default=0.15, above=0, unit="m")  # [] in the plane, m
    height: Array | float = number(default=0.3, above=0, unit="m")  # [] above the goal, m
    crowded: bool = static(default=True)  # other things can be grasped too
    straight: bool = static(default=False)  # ways of hand and thing are, through boards too

    @property
    def action_space(self) -> Box:
        """Grip, turn, forward and joints, as shares of the largest step."""
        return Box(-1.0, 1.0, (10,))

    @property
    def vector_size(self) -> int:
        """As said above."""
        return 35

    @property
    def told_size(self) -> int:
        """And the way that `near_way` tells."""
        return super().told_size + 4

    @whole_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Drive and move the arm, then take or let go."""
        del key
        action = jnp.clip(action, -1, 1)
        after, moved = self.drive(state, action[1:10])
        frames = moved.frames
        middle, axes = loaded(frames, after.load)
        held = after.load.held
        thing = jnp.where(held, middle, after.thing)
        after = replace(after, thing=thing, thing_axes=jnp.where(held, axes, after.thing_axes))
        right, wrong = self._grasped(after, frames, (action[0] > 0.5) & ~held)
        placed = self.is_placed(after)
        lets = held & (action[0] < -0.5)
        lets = lets & placed if self.keeps else lets
        after = self._taken(after, frames, right)
        after = self._let_go(after, lets, placed)
        done, failed = self.ends(state, after, action, lets & placed)
        failed = (failed | wrong | (lets & ~placed)) & ~done
        first = right & ~state.picked
        paid = jnp.where(first, self.pick_bonus, 0.0)
        return self.outcome(after, frames, done, failed, paid)

    @property
    @abstractmethod
    def keeps(self) -> bool:
        """Whether the hand keeps what it would drop badly."""

    @abstractmethod
    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Success and failure after a step, [] bool; `placed`: the thing was placed in it."""

    def is_placed(self, state: State) -> Array:
        """Whether the thing is where it may be let go, [] bool."""
        off = state.thing - self.goal(state)
        flat = jnp.sqrt(off[0] ** 2 + off[1] ** 2)
        return (flat < self.threshold) & (off[2] > -BELOW) & (off[2] < self.height)

    def goal(self, state: State) -> Array:
        """Where the middle of the thing is to get, [3] m."""
        return self.episodes.goal[state.episode].astype(state.thing.dtype)

    def away(self, state: State, x: Array) -> Array:
        """The way to the thing, and once it has been in the hand to the goal."""
        made, e = self.episodes, state.episode
        ways = (made.way(field, e, x) for field in (made.to_goal, made.to_target))
        return jnp.where(state.picked, *ways)

    def near_way(self, state: State, frames: Frames) -> tuple[Array, Array]:
        """The way through free space that is left, [] m, and its slope, [3].

        Of the hand to the thing; once it has been in the hand, of the thing to its goal.
        """
        return jax.tree.map(
            lambda a, b: jnp.where(state.picked, a, b),
            self.thing_way(state, state.thing),
            self.hand_way(state, frames),
        )

    def hand_way(self, state: State, frames: Frames) -> tuple[Array, Array]:
        """The way of the hand to the thing through free space, [] m, and its slope, [3]."""
        x = grip(frames) - state.thing
        return self._near("near_target", state, x, self._over(state, x))

    def thing_way(self, state: State, place: Array) -> tuple[Array, Array]:
        """The way of the thing's middle from a place [3] to its goal, [] m, and its slope, [3]."""
        x = place - self.goal(state)
        return self._near("near_goal", state, x, x)

    def told(self, state: State, frames: Frames) -> list[Array]:
        """And how long the way of hand or thing is, and the direction in which it gets shorter."""
        left, slope = self.near_way(state, frames)
        told = [jnp.minimum(left, self.near)[None], self.local(frames, -slope)]
        return [*super().told(state, frames), *told]

    def vector(self, state: State, frames: Frames) -> list[Array]:
        """As the class says."""
        base, hand = state.joints.base.at[2].set(0.0), grip(frames)
        goal, arm = self.goal(state), state.joints.arm
        off = state.thing - hand
        fine = off / jnp.maximum(rows.length(off), CLOSE)
        to_goal = (goal - base, goal - hand)
        ways = (state.thing - base, off, fine, hand - base, frames.axes[-1, 0], *to_goal)
        parts = [self.local(frames, x) for x in ways]
        rolls = arm[ROLLS]
        parts += [state.load.held.astype(arm.dtype)[None], arm[BENDS], jnp.cos(rolls)]
        return [*parts, jnp.sin(rolls), self.clock(state)]

    def _near(self, name: str, state: State, x: Array, over: Array) -> tuple[Array, Array]:
        """As `approach.way` by the field of that name, or from middle to middle."""
        if self.straight:
            return rows.length(x), approach.unit(x)
        ways = getattr(self.episodes, name)
        if ways is None:
            raise ValueError(
                f"{type(self).__name__}: episodes have no {name}, as those of tasks.visiting; make "
                "them by tasks.fetching or tasks.grasping"
            )
        return approach.way(ways, state.episode, x, over)

    def _over(self, state: State, x: Array) -> Array:
        """From the nearest point of the thing's box to a place [3] off its middle, [3] m."""
        own = in_frame(state.thing_axes, x)
        return in_space(state.thing_axes, own - jnp.clip(own, -state.load.half, state.load.half))

    def _grasped(self, state: State, frames: Frames, tries: Array) -> tuple[Array, Array]:
        """Whether the hand takes the thing, and whether it takes another, [] bool each."""
        at = grip(frames)
        own = rows.length(self._over(state, at - state.thing))
        house, target = self.house(state), self.episodes.target[state.episode]
        things = self.episodes.things[house].astype(at.dtype)
        away = contact.point(Boxes(things), at).at[target].set(own)
        nearest = jnp.min(away) if self.crowded else own
        meets = tries & (nearest <= TOUCH)
        return meets & (own <= nearest), meets & (own > nearest)

    def _taken(self, state: State, frames: Frames, taken: Array) -> State:
        """The thing rigid to the gripper where it is taken."""
        hand, turn = frames.origin[-1], frames.axes[-1]
        place = in_frame(turn, state.thing - hand)
        axes = in_frame(turn[None], state.thing_axes)
        load = Load(
            held=state.load.held | taken,
            half=state.load.half,
            place=jnp.where(taken, place, state.load.place),
            axes=jnp.where(taken, axes, state.load.axes),
        )
        return replace(state, load=load, picked=state.picked | taken)

    def _let_go(self, state: State, lets: Array, placed: Array) -> State:
        """The hand empty; what is placed sinks upright to the height of its goal."""
        sinks = lets & placed
        low = state.thing.at[2].set(self.goal(state)[2])
        x = state.thing_axes[0]
        turn = jnp.concatenate([jnp.zeros(6, x.dtype), rows.unit(x[:2] + 1e-6)])
        return replace(
            state,
            load=replace(state.load, held=state.load.held & ~lets),
            thing=jnp.where(sinks, low, state.thing),
            thing_axes=jnp.where(sinks, upright(turn), state.thing_axes),
        )


def holding(state: State, frames: Frames) -> State:
    """The state with the thing in the hand."""
    half = state.load.half
    state = replace(state, load=in_hand(half), picked=jnp.bool_(True))
    middle, axes = loaded(frames, state.load)
    return replace(state, thing=middle, thing_axes=axes)


def way_to_thing(task: Carry, state: State, frames: Frames) -> Array:
    """The way of the base over the floor and of the hand to the thing, [] m."""
    return task.floor(state) + jnp.minimum(task.hand_way(state, frames)[0], task.near)


def way_to_goal(task: Carry, state: State) -> Array:
    """The way of the base over the floor and of the thing to its goal, [] m."""
    return task.floor(state) + jnp.minimum(task.thing_way(state, state.thing)[0], task.near)
