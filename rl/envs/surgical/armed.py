"""What the tasks of arms share: joints moved by steps, goals in reach, a reward for nearness."""

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.pytree import number, pytree, static

from ...environment import Step
from ...spaces import Box, real
from .arms import PSM, Arm, moved, working


@pytree
class Armed:
    """Actions are steps of the joints; -20 times the distance in m a step, and 1 for a success."""

    speed: Array | float = number(
        default=0.05, above=0
    )  # [] greatest step of a joint, of the range it works in
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] of success, m
    horizon: Array | int = number(default=100, least=1, whole=True, unit="steps")  # [] steps
    arm: Arm = static(default=PSM)

    @property
    def action_space(self) -> Box:
        """Steps of the joints, as fractions of the greatest."""
        return Box(-1.0, 1.0, (self.arm.joints,))

    @property
    def differentiable(self) -> bool:
        """Everywhere but at the limits and on the goal itself."""
        return True

    def drawn(self, key: Array, count: int) -> Array:
        """Random joint positions at work, [count, J]."""
        low, high = working(self.arm, real())
        return low[None] + (high - low)[None] * jax.random.uniform(key, (count, len(low)))

    def moved(self, q: Array, action: Array) -> Array:
        """Joints [J] after a step of `action`, within their range."""
        return moved(self.arm, q, action, self.speed)

    def judged(
        self,
        state: "State",
        observation: Array,
        distance: Array,
        also: Array | bool = True,
        cost: Array | float = 0.0,
    ) -> Step:
        """What a step led to: a success if near and `also`, over when the clock says so."""
        near = (distance < self.tolerance) & also
        over = state.t >= self.horizon
        reward = -20 * distance - cost + near.astype(distance.dtype)
        info = {"success": near, "distance": distance}
        return Step(state, observation, reward, jnp.zeros_like(over), over, info)


@pytree
class State:
    """An arm in time."""

    q: Array  # [J] joints, rad or m
    t: Array  # [] steps since the start


def apart(a: Array, b: Array) -> Array:
    """Distance of two points [3], m; its derivative is finite where they meet."""
    return jnp.sqrt(jnp.sum((a - b) ** 2) + 1e-12)
