"""What the tasks of arms share: joints moved by steps, goals in reach, a reward for nearness."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, static
from jaxgpu.render import Capsules

from ...environment import Step
from ...spaces import Box, real
from .arms import PSM, Arm
from .drawing import draw_reach


@pytree
class ArmTask:
    """Actions are steps of the joints; -20 times the distance in m a step, and 1 for a success."""

    speed: Array | float = number(
        default=0.05, above=0
    )  # [] greatest step of a joint, of its working range
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] of success, m
    max_steps: Array | int = number(default=100, least=1, whole=True, unit="steps")  # [] steps
    arm: Arm = static(default=PSM)

    differentiable = True  #: except at the limits and on the goal itself

    @property
    def action_space(self) -> Box:
        """Steps of the joints, as fractions of the greatest."""
        return Box(-1.0, 1.0, (self.arm.joints,))

    def random_joints(self, key: Array, count: int) -> Array:
        """Random joint positions in the working range, [count, J]."""
        low, high = self.arm.working_range(real())
        return low[None] + (high - low)[None] * jax.random.uniform(key, (count, len(low)))

    def scene(self, state: Any, radius: Array | float = 0.006) -> Capsules:
        """Return the arm and the goal as capsules, links of `radius`, m."""
        return draw_reach(self.arm, state.q, state.goal, self.tolerance, radius)

    def outcome(
        self,
        state: "State",
        observation: Array,
        distance: Array,
        condition: Array | bool = True,
        cost: Array | float = 0.0,
    ) -> Step:
        """What a step led to: a success if near and `condition`, cut when the clock says so."""
        success = (distance < self.tolerance) & condition
        truncated = state.t >= self.max_steps
        reward = -20 * distance - cost + success.astype(distance.dtype)
        info = {"success": success, "distance": distance}
        return Step(state, observation, reward, jnp.zeros_like(truncated), truncated, info)


@pytree
class State:
    """An arm in time."""

    q: Array  # [J] joints, rad or m
    t: Array  # [] steps since the start


def distance(a: Array, b: Array) -> Array:
    """The distance of two points [3], m; its derivative is finite where they meet."""
    return jnp.sqrt(jnp.sum((a - b) ** 2) + 1e-12)
