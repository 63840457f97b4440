"""The tasks of carrying: mobile pick, place, and rearrange, which is one after the other.

Success, failure and what pays:

mobile pick  the thing is in the hand; -- another is. The way of base and hand to the thing, and
             `bonus` at the end.
place        it is in the hand at first and is placed; a bad drop. The way of base and thing to the
             goal.
rearrange    first the one and then the other, `pick_bonus` between; the end action, the eleventh
             number above .5 after step 5, decides: success where the thing is placed and the hand
             empty, else failure. With `end_action=False` to place it is success, and with
             `safe_drop=True` the hand keeps what it would drop badly.
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
from .carry import SOON, Carry, holding, way_to_goal, way_to_thing
from .episodes import Episodes
from .standard import standard
from .task import State


@pytree
class MobilePick(Carry):
    """Go to a thing and take it; the published observations, the goal's too, for later use.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/mobile-pick")
    >>> type(env).__name__, env.action_space.shape
    ('MobilePick', (10,))
    """

    @property
    def keeps(self) -> bool:
        """There is nothing to let go."""
        return False

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Over when the thing is in the hand."""
        del before, action
        return state.load.held, jnp.zeros_like(placed)

    def left(self, state: State, frames: Frames) -> Array:
        """Of base and hand to the thing."""
        return way_to_thing(self, state, frames)

    def away(self, state: State, x: Array) -> Array:
        """The way to the thing, also as it is taken."""
        return self.episodes.way(self.episodes.to_target, state.episode, x)

    def near_way(self, state: State, frames: Frames) -> tuple[Array, Array]:
        """That of the hand, also as it takes the thing."""
        return self.hand_way(state, frames)

    @property
    def script(self) -> script.Script:
        """A script that goes to the thing and takes it: a teacher of `rl.KickstartedPPO`.

        From an observation [N] of this task without a camera to an action [10]; what is no
        observation is refused.

        Raises:
            TypeError: a movement by forces, or a camera, of whose pictures it makes nothing.

        >>> import jax
        >>> from jaxgpu import rl
        >>> env = rl.make("rearrange/mobile-pick")
        >>> state, seen = env.reset(jax.random.key(0))
        >>> env.script(seen).shape
        (10,)
        """
        if self.pixels or not isinstance(self.movement, Movement):
            raise TypeError(
                "script: it is of Fetch without forces and of the vector that knows the way; make "
                "rearrange/mobile-pick without pixels"
            )
        return script.Script(self.movement, self.vector_size + self.told_size)


@pytree
class Place(Carry):
    """Bring what is in the hand to its goal, and let it go there.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/place")
    >>> type(env).__name__, env.action_space.shape
    ('Place', (10,))
    """

    safe_drop: bool = static(default=False)  # the hand keeps what it would drop badly

    @property
    def keeps(self) -> bool:
        """As asked for."""
        return self.safe_drop

    def prepared(self, state: State, frames: Frames) -> State:
        """With the thing in the hand."""
        return holding(state, frames)

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Over when it is placed."""
        del before, state, action
        return placed, jnp.zeros_like(placed)

    def left(self, state: State, frames: Frames) -> Array:
        """Of base and thing to the goal."""
        del frames
        return way_to_goal(self, state)


@pytree
class Rearrange(Carry):
    """Take a thing, bring it to its goal, let it go there, and say that all is done.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/rearrange")
    >>> type(env).__name__, env.action_space.shape
    ('Rearrange', (11,))
    """

    end_action: bool = static(default=True)  # an eleventh number decides
    safe_drop: bool = static(default=False)  # the hand keeps what it would drop badly

    @property
    def action_space(self) -> Box:
        """Those of `Carry`, and whether it is done."""
        return Box(-1.0, 1.0, (11 if self.end_action else 10,))

    @property
    def keeps(self) -> bool:
        """As asked for."""
        return self.safe_drop

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Over when it is said to be, or when the thing is placed."""
        del before
        if not self.end_action:
            return placed, jnp.zeros_like(placed)
        done = state.picked & ~state.load.held & self.is_placed(state)
        says = (action[10] > 0.5) & (state.t > SOON)
        return says & done, says & ~done

    def left(self, state: State, frames: Frames) -> Array:
        """Of base and hand to the thing and on to the goal; once it was taken, to the goal."""
        made, e = self.episodes, state.episode
        row = made.things[made.house[e], made.target[e]].astype(state.thing.dtype)
        onward = self.way * made.way(made.to_goal, e, row[:2])
        onward = onward + jnp.minimum(self.thing_way(state, row[:3])[0], self.near)
        later = way_to_goal(self, state)
        return jnp.where(state.picked, later, way_to_thing(self, state, frames) + onward)


@register("rearrange/mobile-pick")
def make_mobile_pick(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> MobilePick:
    """Mobile pick in houses: those given, or four.

    >>> make_mobile_pick().action_space.shape
    (10,)
    """
    return MobilePick(episodes=standard("fetching", houses, episodes), **parameters)


@register("rearrange/place")
def make_place(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> Place:
    """Placing in houses: those given, or four.

    >>> make_place().pick_bonus
    5.0
    """
    return Place(episodes=standard("fetching", houses, episodes), **parameters)


@register("rearrange/rearrange")
def make_rearrange(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> Rearrange:
    """The whole task in houses: those given, or four.

    >>> make_rearrange().action_space.shape
    (11,)
    """
    return Rearrange(episodes=standard("fetching", houses, episodes), **parameters)
