"""Carrying tasks: mobile pick, place, and rearrange, which combines both.

Success, failure and reward:

mobile pick  success: the object is in the hand; failure: another object is. The reward follows the
             paths of base and hand to the object, plus `bonus` on success.
place        the object starts in the hand. Success: it is placed; failure: a bad drop. The reward
             follows the paths of base and object to the goal.
rearrange    pick, then place, with `pick_bonus` in between. The end action, the eleventh component
             above .5 after step 5, decides: success if the object is placed and the hand empty,
             else failure. With `end_action=False` placing is success, and with `safe_drop=True`
             the hand refuses bad drops.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree, static

from ....environment import register
from ....spaces import Box
from ..house import House
from ..robot.fetch import Frames
from ..robot.movement import Movement
from . import script
from .carry import MIN_STEPS, CarryTask, hold_object, path_to_goal, path_to_object
from .defaults import resolve_episodes
from .episodes import Episodes
from .task import State


@pytree
class MobilePick(CarryTask):
    """Task of going to an object and grasping it; the observation also has the unused goal.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/mobile-pick")
    >>> type(env).__name__, env.action_space.shape
    ('MobilePick', (10,))
    """

    @property
    def keeps_object(self) -> bool:
        """False: there is nothing to release."""
        return False

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Return success once the object is in the hand."""
        del before, action
        return state.load.held, jnp.zeros_like(placed)

    def left(self, state: State, frames: Frames) -> Array:
        """Return the path lengths of base and hand to the object."""
        return path_to_object(self, state, frames)

    def floor_path(self, state: State, x: Array) -> Array:
        """Return the path length to the object, also in the step in which it is grasped."""
        return self.episodes.path_length(self.episodes.to_target, state.episode, x)

    def near_path(self, state: State, frames: Frames) -> tuple[Array, Array]:
        """Return `hand_path`, also in the step in which the hand grasps the object."""
        return self.hand_path(state, frames)

    @property
    def script(self) -> script.ScriptedPolicy:
        """Scripted policy that goes to the object and grasps it, a teacher of `rl.KickstartedPPO`.

        It maps an observation [N] of this task, without a camera, to an action [10], and rejects
        invalid observations.

        Raises:
            TypeError: a movement by forces, or a camera, whose images the script cannot use.

        >>> import jax
        >>> from jaxgpu import rl
        >>> env = rl.make("rearrange/mobile-pick")
        >>> state, seen = env.reset(jax.random.key(0))
        >>> env.script(seen).shape
        (10,)
        """
        if self.pixels or not isinstance(self.movement, Movement):
            raise TypeError(
                "script: it needs Fetch without forces, and observations with the shortest path; "
                "make rearrange/mobile-pick without pixels"
            )
        return script.ScriptedPolicy(self.movement, self.vector_size + self.privileged_size)


@pytree
class Place(CarryTask):
    """Task of bringing the held object to its goal and releasing it there.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/place")
    >>> type(env).__name__, env.action_space.shape
    ('Place', (10,))
    """

    safe_drop: bool = static(default=False)  # the hand refuses bad drops

    @property
    def keeps_object(self) -> bool:
        """True with `safe_drop`."""
        return self.safe_drop

    def prepare(self, state: State, frames: Frames) -> State:
        """Return the state with the object in the hand."""
        return hold_object(state, frames)

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Return success once the object is placed."""
        del before, state, action
        return placed, jnp.zeros_like(placed)

    def left(self, state: State, frames: Frames) -> Array:
        """Return the path lengths of base and object to the goal."""
        del frames
        return path_to_goal(self, state)


@pytree
class Rearrange(CarryTask):
    """Task of picking an object, releasing it at its goal, and signalling the end.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/rearrange")
    >>> type(env).__name__, env.action_space.shape
    ('Rearrange', (11,))
    """

    end_action: bool = static(default=True)  # an eleventh action component ends the episode
    safe_drop: bool = static(default=False)  # the hand refuses bad drops

    @property
    def action_space(self) -> Box:
        """The box of `CarryTask`, plus the end action."""
        return Box(-1.0, 1.0, (11 if self.end_action else 10,))

    @property
    def keeps_object(self) -> bool:
        """True with `safe_drop`."""
        return self.safe_drop

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Return success and failure at the end action, or success once the object is placed."""
        del before
        if not self.end_action:
            return placed, jnp.zeros_like(placed)
        done = state.picked & ~state.load.held & self.is_placed(state)
        says = (action[10] > 0.5) & (state.t > MIN_STEPS)
        return says & done, says & ~done

    def left(self, state: State, frames: Frames) -> Array:
        """Return the path length to the object and on to the goal; after picking, to the goal."""
        made, e = self.episodes, state.episode
        row = made.things[made.house[e], made.target[e]].astype(state.thing.dtype)
        onward = self.way * made.path_length(made.to_goal, e, row[:2])
        onward = onward + jnp.minimum(self.object_path(state, row[:3])[0], self.near)
        later = path_to_goal(self, state)
        return jnp.where(state.picked, later, path_to_object(self, state, frames) + onward)


@register("rearrange/mobile-pick")
def make_mobile_pick(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> MobilePick:
    """Make mobile pick in the given houses, or in four default ones.

    >>> make_mobile_pick().action_space.shape
    (10,)
    """
    return MobilePick(episodes=resolve_episodes("fetch_episodes", houses, episodes), **parameters)


@register("rearrange/place")
def make_place(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> Place:
    """Make the place task in the given houses, or in four default ones.

    >>> make_place().pick_bonus
    5.0
    """
    return Place(episodes=resolve_episodes("fetch_episodes", houses, episodes), **parameters)


@register("rearrange/rearrange")
def make_rearrange(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> Rearrange:
    """Make the full rearrangement task in the given houses, or in four default ones.

    >>> make_rearrange().action_space.shape
    (11,)
    """
    return Rearrange(episodes=resolve_episodes("fetch_episodes", houses, episodes), **parameters)
