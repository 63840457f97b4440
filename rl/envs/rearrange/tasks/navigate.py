"""Go to a place in a house: point-goal navigation, by turning and driving ahead.

After the task of the name (Anderson et al. 2018, arXiv:1807.06757): an episode is a success when
the robot is within `radius` of the place; with `stop`, when it says so there. The way that is paid
for is the shortest one over the floor.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.fields import number, pytree, static

from ....environment import Step, register, whole_actions
from ....spaces import Box
from ..house import House
from ..robot.fetch import Frames
from .episodes import Episodes
from .standard import standard
from .task import HouseTask, State

SOON = 5  # steps, before which saying that it is there does not count


@pytree
class Navigate(HouseTask):
    """An action turns and drives the base; with `stop` a third number above .5 ends the episode.

    Observed are the way to the place, straight, in the frame of the base [2]; the arm stays folded.
    An episode fails where the robot stops elsewhere.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/navigate", stop=True)
    >>> type(env).__name__, env.action_space.shape
    ('Navigate', (3,))
    """

    radius: Array | float = number(default=0.3, above=0, unit="m")  # [] of success, m
    stop: bool = static(default=False)  # success is to be said

    @property
    def action_space(self) -> Box:
        """Turn and forward, as shares of the largest step, and whether to stop."""
        return Box(-1.0, 1.0, (3 if self.stop else 2,))

    @property
    def vector_size(self) -> int:
        """The place, and the clock."""
        return 5

    @whole_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Drive; see whether the robot is there."""
        del key
        action = jnp.clip(action, -1, 1)
        after, moved = self.drive(state, action[:2])
        there = rows.length(self._ahead(after)) < self.radius
        says = (action[2] > 0.5) & (after.t > SOON) if self.stop else jnp.bool_(True)
        return self.outcome(after, moved.frames, there & says, ~there & says & self.stop)

    def left(self, state: State, frames: Frames) -> Array:
        """The way over the floor."""
        del frames
        return self.floor(state).astype(state.thing.dtype)

    def away(self, state: State, x: Array) -> Array:
        """The way to the place."""
        return self.episodes.way(self.episodes.to_goal, state.episode, x)

    def vector(self, state: State, frames: Frames) -> list[Array]:
        """The place, straight, and the clock."""
        ahead = jnp.append(self._ahead(state), 0.0)
        return [self.local(frames, ahead)[:2], self.clock(state)]

    def _ahead(self, state: State) -> Array:
        goal = self.episodes.goal[state.episode].astype(state.thing.dtype)
        return goal[:2] - state.joints.base[:2]


@register("rearrange/navigate")
def make_navigate(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> Navigate:
    """Navigation in houses: those given, or four.

    >>> make_navigate().action_space.shape
    (2,)
    """
    return Navigate(episodes=standard("visiting", houses, episodes), **parameters)
