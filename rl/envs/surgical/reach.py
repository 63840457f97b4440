"""Bring the tip of a surgical arm to a point: psm-reach, ecm-reach and star-reach, kinematic.

Start and goal are tips of random joint positions in the arm's working range, so that every goal is
reachable.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import pytree

from ...environment import Step, check_actions, register
from ...spaces import Box
from . import arm_task
from .arms import ECM, STAR
from .kinematics import forward_kinematics


@pytree
class State(arm_task.State):
    """State of arm and goal."""

    goal: Array  # [3] m


@register("surgical/psm-reach")
@pytree
class Reach(arm_task.ArmTask):
    """Reaching task: reward -20 distance per step in m, plus 1 within `tolerance`.

    >>> import jax
    >>> from jaxgpu import rl
    >>> isinstance(rl.make("surgical/psm-reach"), Reach), Reach().reset(jax.random.key(0))[1].shape
    (True, (12,))
    """

    @property
    def observation_space(self) -> Box:
        """Joints in their range, vector to the goal in 5 cm, tip in 20 cm."""
        return Box(-np.inf, np.inf, (self.arm.joints + 6,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at a random position of the arm, with the tip of another one as goal."""
        q, other = self.random_joints(key, 2)
        state = State(q, jnp.int32(0), forward_kinematics(self.arm, other)[0])
        return state, self._observe(state, forward_kinematics(self.arm, q)[0])

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the joints by `action`, within their range."""
        new = State(self.arm.step_joints(state.q, action, self.speed), state.t + 1, state.goal)
        tip, _ = forward_kinematics(self.arm, new.q)
        return self.outcome(new, self._observe(new, tip), arm_task.distance(state.goal, tip))

    def _observe(self, state: State, tip: Array) -> Array:
        joints = self.arm.normalize(state.q)
        return jnp.concatenate([joints, 20 * (state.goal - tip), 5 * tip])


@register("surgical/ecm-reach")
def make_ecm_reach(**parameters: Any) -> Reach:
    """Make the reaching task of the endoscope manipulator, with four joints."""
    return Reach(arm=ECM, **parameters)


@register("surgical/star-reach")
def make_star_reach(**parameters: Any) -> Reach:
    """Make the reaching task of STAR, with seven joints."""
    return Reach(arm=STAR, **parameters)
