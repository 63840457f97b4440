"""Point-goal navigation: drive to a position in a house by turning and moving forward.

After the task of that name (Anderson et al. 2018, arXiv:1807.06757). An episode succeeds when the
robot is within `radius` of the goal; with `stop`, when it signals so there. The reward follows the
shortest path over the floor.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.fields import number, pytree, static

from ....environment import Step, check_actions, register
from ....spaces import Box
from ..house import House
from ..robot.fetch import Frames
from .defaults import resolve_episodes
from .episodes import Episodes
from .task import HouseTask, State

MIN_STEPS = 5  # steps before which the stop action is ignored


@pytree
class Navigate(HouseTask):
    """Navigation task, whose action turns and drives the base.

    With `stop` a third component above .5 ends the episode; it fails if the goal is not reached.
    The observation has the straight vector to the goal in the base frame [2]; the arm is folded.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/navigate", stop=True)
    >>> type(env).__name__, env.action_space.shape
    ('Navigate', (3,))
    """

    radius: Array | float = number(default=0.3, above=0, unit="m")  # [] success threshold, m
    stop: bool = static(default=False)  # success requires the stop action

    @property
    def action_space(self) -> Box:
        """Box of turn and forward, as fractions of the maximum step, and the stop action."""
        return Box(-1.0, 1.0, (3 if self.stop else 2,))

    @property
    def vector_size(self) -> int:
        """Length of goal vector and clock."""
        return 5

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Drive the base and test whether the robot is at the goal."""
        del key
        action = jnp.clip(action, -1, 1)
        after, moved = self.drive(state, action[:2])
        there = rows.length(self._displacement_to_goal(after)) < self.radius
        says = (action[2] > 0.5) & (after.t > MIN_STEPS) if self.stop else jnp.bool_(True)
        return self.outcome(after, moved.frames, there & says, ~there & says & self.stop)

    def left(self, state: State, frames: Frames) -> Array:
        """Return the weighted path length over the floor."""
        del frames
        return self.floor(state).astype(state.thing.dtype)

    def floor_path(self, state: State, x: Array) -> Array:
        """Return the path length to the goal."""
        return self.episodes.path_length(self.episodes.to_goal, state.episode, x)

    def vector(self, state: State, frames: Frames) -> list[Array]:
        """Return the straight vector to the goal, and the clock."""
        ahead = jnp.append(self._displacement_to_goal(state), 0.0)
        return [self.to_base_frame(frames, ahead)[:2], self.clock(state)]

    def _displacement_to_goal(self, state: State) -> Array:
        goal = self.episodes.goal[state.episode].astype(state.thing.dtype)
        return goal[:2] - state.joints.base[:2]


@register("rearrange/navigate")
def make_navigate(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> Navigate:
    """Make the navigation task in the given houses, or in four default ones.

    >>> make_navigate().action_space.shape
    (2,)
    """
    return Navigate(episodes=resolve_episodes("visit_episodes", houses, episodes), **parameters)
