"""Follow a moving point with the tip of a surgical arm: psm-track and star-track, kinematic.

The point is the tip of another arm of the same kind, each of whose joints oscillates at its own
frequency, at most at `goal_speed` of the arm's maximum, so that it can always be followed. In
metres that is more for a longer arm: medians per step are 2.5 mm for the PSM, 7 mm for STAR.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Capsules

from ...environment import Step, check_actions, register
from ...spaces import Box
from . import arm_task
from .arms import STAR
from .drawing import draw_reach
from .kinematics import forward_kinematics


@pytree
class State(arm_task.State):
    """State of the arm, and of the other one whose tip is the goal."""

    phase: Array  # [J] of the other arm's joints at the start, rad
    frequency: Array  # [J] phase increment per step, rad


@register("surgical/psm-track")
@pytree
class Track(arm_task.ArmTask):
    """Tracking task: reward -20 distance per step in m, plus 1 within `tolerance`.

    >>> Track().reset(jax.random.key(0))[1].shape
    (15,)
    """

    max_steps: Array | int = number(default=200, least=1, whole=True, unit="steps")  # [] steps
    goal_speed: Array | float = number(
        default=0.5, least=0, most=1
    )  # [] maximum step of the goal's joints, as a fraction of the arm's maximum

    @property
    def observation_space(self) -> Box:
        """Joints in their range, vector to goal in 5 cm, its last step in 5 mm, tip in 20 cm."""
        return Box(-np.inf, np.inf, (self.arm.joints + 9,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at a random position of the arm, with a goal that moves from another one."""
        arm_key, goal_key = jax.random.split(key)
        phase, part = jax.random.uniform(goal_key, (2, self.arm.joints))
        # A joint oscillates over half of its range, so a step is at most a quarter of that range
        # times the frequency.
        frequency = 4 * self.goal_speed * self.speed * (2 * part - 1)
        state = State(self.random_joints(arm_key, 1)[0], jnp.int32(0), 2 * np.pi * phase, frequency)
        return state, self._observe(
            state, forward_kinematics(self.arm, state.q)[0], self.goal(state)
        )

    def goal(self, state: State, ago: int = 0) -> Array:
        """Return the position that the tip should have, [3] m, optionally `ago` steps earlier."""
        low, high = self.arm.working_range(state.q.dtype)
        t = (state.t - ago).astype(state.q.dtype)
        swing = jnp.sin(state.phase + state.frequency * t)
        return forward_kinematics(self.arm, (low + high) / 2 + (high - low) / 4 * swing)[0]

    def scene(self, state: Any, radius: Array | float = 0.006) -> Capsules:
        """Return the arm and the moving goal as capsules, links of `radius`, m."""
        return draw_reach(self.arm, state.q, self.goal(state), self.tolerance, radius)

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the joints by `action` within their range, then the goal by a step."""
        new = State(
            self.arm.step_joints(state.q, action, self.speed),
            state.t + 1,
            state.phase,
            state.frequency,
        )
        tip, goal = forward_kinematics(self.arm, new.q)[0], self.goal(new)
        return self.outcome(new, self._observe(new, tip, goal), arm_task.distance(goal, tip))

    def _observe(self, state: State, tip: Array, goal: Array) -> Array:
        step = goal - self.goal(state, 1)
        joints = self.arm.normalize(state.q)
        return jnp.concatenate([joints, 20 * (goal - tip), 200 * step, 5 * tip])


@register("surgical/star-track")
def make_star_track(**parameters: Any) -> Track:
    """Make the tracking task of STAR, with seven joints."""
    return Track(arm=STAR, **parameters)
