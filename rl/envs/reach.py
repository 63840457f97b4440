"""Bring the tip of a surgical arm to a point: psm-reach, ecm-reach and star-reach, kinematic.

Start and goal are tips of random joint positions in the arm's range at work, so that every goal can
be reached.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import pytree, static
from jaxgpu.rl.arms import ECM, PSM, STAR, Arm, moved, place, scaled, working
from jaxgpu.rl.environment import Step, register
from jaxgpu.rl.spaces import Box


@pytree
class State:
    """Arm and goal."""

    q: Array  # [J] joints, rad or m
    goal: Array  # [3] m
    t: Array  # [] steps since the start


@pytree
class Reach:
    """-20 times the distance in m a step, and 1 where it is less than `tolerance`."""

    speed: Array | float = 0.05  # [] greatest step of a joint, of the range it may move in
    tolerance: Array | float = 0.005  # [] of success, m
    horizon: Array | int = 100  # [] steps
    arm: Arm = static(default=PSM)

    @property
    def observation_space(self) -> Box:
        """Joints in their range, vector to the goal in 5 cm, tip in 20 cm."""
        return Box(-np.inf, np.inf, (self.arm.joints + 6,))

    @property
    def action_space(self) -> Box:
        """Steps of the joints, as fractions of the greatest."""
        return Box(-1.0, 1.0, (self.arm.joints,))

    @property
    def differentiable(self) -> bool:
        """Everywhere but at the limits and on the goal itself."""
        return True

    def start(self, key: Array) -> tuple[State, Array]:
        """A random position of the arm, and the tip of another for a goal."""
        low, high = working(self.arm, jnp.float32)
        part, other_part = jax.random.uniform(key, (2, self.arm.joints))
        q, other = low + (high - low) * part, low + (high - low) * other_part
        state = State(q, place(self.arm, other)[0], jnp.int32(0))
        return state, self._observe(state, place(self.arm, q)[0])

    def advance(self, state: State, action: Array, key: Array) -> Step:
        """Move the joints by `action`, within their range."""
        q = moved(self.arm, state.q, action, self.speed)
        tip, _ = place(self.arm, q)
        distance = jnp.sqrt(jnp.sum((state.goal - tip) ** 2) + 1e-12)
        near = distance < self.tolerance
        new = State(q, state.goal, state.t + 1)
        over = new.t >= self.horizon
        reward = -20 * distance + near.astype(q.dtype)
        info = {"success": near, "distance": distance}
        return Step(new, self._observe(new, tip), reward, jnp.zeros_like(over), over, info)

    def _observe(self, state: State, tip: Array) -> Array:
        joints = scaled(self.arm, state.q)
        return jnp.concatenate([joints, 20 * (state.goal - tip), 5 * tip])


@register("surgical/psm-reach")
def psm_reach(**parameters: Any) -> Reach:
    """The patient-side manipulator, six joints."""
    return Reach(**parameters)


@register("surgical/ecm-reach")
def ecm_reach(**parameters: Any) -> Reach:
    """The endoscope manipulator, four joints."""
    return Reach(arm=ECM, **parameters)


@register("surgical/star-reach")
def star_reach(**parameters: Any) -> Reach:
    """The seven joints of STAR."""
    return Reach(arm=STAR, **parameters)
