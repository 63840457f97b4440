"""Keep a target at the center of the endoscope's image, upright: ecm-centre, kinematic.

The camera looks along the shaft, from its tip. The target is the point that another, random
position of the arm sees at its center 50 mm ahead, with that position's roll; so it can always be
centered. SurRoL's task of that kind compares the misorientation with itself (always 0); here it is
the angle about the optical axis between the image and that of the other position.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree, static
from jaxgpu.render import Capsules

from ...environment import Step, check_actions, register
from ...spaces import Box
from . import arm_task
from .arms import ECM, Arm
from .drawing import draw_arm
from .kinematics import forward_kinematics

AHEAD = 0.05  # m from the lens to the target, in the other position


@pytree
class State(arm_task.State):
    """State of endoscope and target."""

    goal: Array  # [3] of the target, m
    goal_roll: Array  # [] of the desired image, rad


@register("surgical/ecm-centre")
@pytree
class Center(arm_task.ArmTask):
    """Centering task: reward -20 distance of the target, in m, and -0.2 |roll error| per step.

    Success: the target is less than `tolerance` off, in the image plane and in depth together, and
    upright within `roll_tolerance`.

    >>> import jax
    >>> Center().reset(jax.random.key(0))[1].shape
    (8,)
    """

    roll_tolerance: Array | float = number(default=0.05, above=0, unit="rad")  # [] of success, rad
    arm: Arm = static(default=ECM)

    #: joints in their range, target in the camera's frame in 5 cm, roll error in rad
    observation_space = Box(-np.inf, np.inf, (8,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at a random position, with the view of another one as target."""
        q, other = self.random_joints(key, 2)
        lens, R = forward_kinematics(self.arm, other)
        state = State(q, jnp.int32(0), lens + AHEAD * R[:, 2], other[3])
        return state, self._observe(state, self.goal_in_camera(state))

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the joints by `action`, within their range."""
        q = self.arm.step_joints(state.q, action, self.speed)
        new = State(q, state.t + 1, state.goal, state.goal_roll)
        seen, off, tilt = self._errors(new)
        observation = self._observe(new, seen)
        return self.outcome(new, observation, off, tilt < self.roll_tolerance, 0.2 * tilt)

    def scene(self, state: State, radius: Array | float = 0.006) -> Capsules:
        """Return the endoscope and the target as capsules, links of `radius`, m."""
        return draw_arm(self.arm, state.q, state.goal, self.is_success(state), radius)

    def is_success(self, state: State) -> Array:
        """Return whether the target is at the center, upright."""
        _, off, tilt = self._errors(state)
        return (off < self.tolerance) & (tilt < self.roll_tolerance)

    def _errors(self, state: State) -> tuple[Array, Array, Array]:
        """Return the target in the camera's frame, its distance off, m, and its tilt, rad."""
        seen = self.goal_in_camera(state)
        off = jnp.sqrt(seen[0] ** 2 + seen[1] ** 2 + (seen[2] - AHEAD) ** 2 + 1e-12)
        return seen, off, jnp.abs(state.q[3] - state.goal_roll)

    def goal_in_camera(self, state: State) -> Array:
        """Return the target in the camera's frame, [3] m: right, down, forward."""
        lens, R = forward_kinematics(self.arm, state.q)
        return jnp.sum(R * (state.goal - lens)[:, None], 0)

    def _observe(self, state: State, seen: Array) -> Array:
        tilt = (state.goal_roll - state.q[3])[None]
        return jnp.concatenate([self.arm.normalize(state.q), 20 * seen, tilt])
