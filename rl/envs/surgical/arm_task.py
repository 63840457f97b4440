"""Base class of the joint-space tasks of arms: joint steps, reachable goals, distance rewards."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, static
from jaxgpu.render import Capsules

from ...environment import Step
from ...spaces import Box, float_dtype
from .arms import PSM, Arm
from .drawing import draw_reach


@pytree
class ArmTask:
    """Base class: actions step the joints; reward -20 distance per step in m, plus 1 on success."""

    speed: Array | float = number(
        default=0.05, above=0
    )  # [] maximum joint step, as a fraction of the working range
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] success threshold, m
    max_steps: Array | int = number(default=100, least=1, whole=True, unit="steps")  # [] steps
    arm: Arm = static(default=PSM)

    differentiable = True  #: except at the limits and on the goal itself

    @property
    def action_space(self) -> Box:
        """Box of joint steps, as fractions of the maximum."""
        return Box(-1.0, 1.0, (self.arm.joints,))

    def random_joints(self, key: Array, count: int) -> Array:
        """Sample joint positions in the working range, [count, J]."""
        low, high = self.arm.working_range(float_dtype())
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
        """Return the transition: success if close and `condition`; truncated by the time limit."""
        success = (distance < self.tolerance) & condition
        truncated = state.t >= self.max_steps
        reward = -20 * distance - cost + success.astype(distance.dtype)
        info = {"success": success, "distance": distance}
        return Step(state, observation, reward, jnp.zeros_like(truncated), truncated, info)


@pytree
class State:
    """State of an arm."""

    q: Array  # [J] joints, rad or m
    t: Array  # [] steps since the start


def distance(a: Array, b: Array) -> Array:
    """Return the distance of two points [3], m; its derivative is finite if they coincide."""
    return jnp.sqrt(jnp.sum((a - b) ** 2) + 1e-12)
