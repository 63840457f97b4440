"""Surgical Gym's reaching tasks as published: psm-, ecm- and star-reach-compat.

Schmidgall, Krieger & Eshraghian (2023), arXiv:2310.04676; arms, drives and positions are in
`surgical_gym_arms`. Actions move targets in -1 ... 1, and drives move the joints to them. The goal
is normally distributed about a fixed center, and an episode has 399 steps. Departures: a drive's
damping is assumed to dominate inertia and weight, so that the joint follows the first-order law (it
does by 10^4, except for STAR's shoulder). The two fingers, which stay shut, are omitted. Each copy
samples its own goal (there, the reset of one copy resamples the goals of all). STAR's arm is that
of `arms`, and its tool does not rotate.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Capsules

from ...environment import Step, check_actions, register
from ...spaces import Box, float_dtype
from . import arm_task
from .arms import Arm
from .drawing import draw_reach
from .kinematics import forward_kinematics
from .surgical_gym_arms import GYM_ECM, GYM_PSM, GYM_STAR, GymArm


@pytree
class State(arm_task.State):
    """State of arm and goal, and the targets of the joints."""

    distal: Array  # [I] joints that do not move the tip, rad
    target: Array  # [J + I] in -1 ... 1
    goal: Array  # [3] m


@register("surgical/psm-reach-compat")
@pytree
class SurgicalGymReach:
    """Published reaching task: minus |tip - goal|_1 in m, and small costs of velocity and joints.

    >>> SurgicalGymReach().reset(jax.random.key(0))[1].shape
    (33,)
    """

    speed: Array | float = number(default=0.01, above=0)  # [] maximum change of a target per step
    goal_spread: Array | float = number(
        default=0.05, least=0, unit="m"
    )  # [] standard deviation of the goal in each direction, m
    speed_cost: Array | float = number(default=1e-4, least=0)  # [] per rad/s or m/s
    joint_cost: Array | float = number(default=0.01, least=0)  # [] per rad or m
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] success threshold, m
    max_steps: Array | int = number(default=399, least=1, whole=True, unit="steps")  # [] steps
    model: GymArm = GYM_PSM

    @property
    def arm(self) -> Arm:
        """Chain of the joints that move the tip."""
        return self.model.arm

    differentiable = True  #: except at the limits and where a coordinate of tip - goal is zero

    @property
    def observation_space(self) -> Box:
        """Joints, their velocities, tip, targets, tip - goal, in SI units."""
        return Box(-np.inf, np.inf, (3 * self.model.joints + 6,))

    @property
    def action_space(self) -> Box:
        """Box of changes of the targets, as fractions of the maximum."""
        return Box(-1.0, 1.0, (self.model.joints,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at a fixed position, with a random goal."""
        target = jnp.asarray(self.model.initial_target, float_dtype())
        joints = target * jnp.asarray(self.model.scale, float_dtype())
        goal = jnp.asarray(self.model.goal_centre, float_dtype())
        goal = goal + self.goal_spread * jax.random.normal(key, (3,), float_dtype())
        state = self._make_state(joints, jnp.int32(0), target, goal)
        return state, self._observe(state, jnp.zeros_like(joints))

    def scene(self, state: Any, radius: Array | float = 0.006) -> Capsules:
        """Return the arm and the goal as capsules, links of `radius`, m."""
        return draw_reach(self.arm, state.q, state.goal, self.tolerance, radius)

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the targets by `action`; the drives follow."""
        joints = jnp.concatenate([state.q, state.distal])
        model = jax.tree.map(lambda x: jnp.asarray(x, joints.dtype), self.model)
        target = jnp.clip(state.target + self.speed * jnp.clip(action, -1, 1), -1, 1)
        error = model.scale * target + model.offset - joints
        # Implicit Euler of the first-order law v = rate (target - joints).
        v = model.rate / (1 + model.dt * model.rate) * error
        v = jnp.clip(v, -model.max_velocity, model.max_velocity)
        after = jnp.clip(joints + model.dt * v, model.lower, model.upper)
        v = (after - joints) / model.dt
        new = self._make_state(after, state.t + 1, target, state.goal)
        seen = self._observe(new, v)
        error = seen[-3:]
        cost = jnp.sum(jnp.abs(error)) + self.speed_cost * jnp.sum(jnp.abs(v))
        cost = cost + self.joint_cost * jnp.sum(jnp.abs(after))
        truncated = new.t >= self.max_steps
        distance = arm_task.distance(error, jnp.zeros_like(error))
        info = {"success": distance < self.tolerance, "distance": distance}
        return Step(new, seen, -cost, jnp.zeros_like(truncated), truncated, info)

    def _make_state(self, joints: Array, t: Array, target: Array, goal: Array) -> State:
        count = self.arm.joints
        return State(q=joints[:count], t=t, distal=joints[count:], target=target, goal=goal)

    def _observe(self, state: State, v: Array) -> Array:
        tip, _ = forward_kinematics(self.arm, state.q)
        return jnp.concatenate([state.q, state.distal, v, tip, state.target, tip - state.goal])


@register("surgical/ecm-reach-compat")
def make_ecm_reach_compat(**parameters: Any) -> SurgicalGymReach:
    """Make the endoscope's task, with a reward of distance only; goals are out of reach."""
    task = {"speed": 0.02, "goal_spread": 0.1, "speed_cost": 0.0, "joint_cost": 0.0}
    return SurgicalGymReach(**{**task, "model": GYM_ECM, **parameters})


@register("surgical/star-reach-compat")
def make_star_reach_compat(**parameters: Any) -> SurgicalGymReach:
    """Make STAR's task, with a reward of distance and a small cost of velocity."""
    task = {"goal_spread": 0.15, "speed_cost": 1e-3, "joint_cost": 0.0}
    return SurgicalGymReach(**{**task, "model": GYM_STAR, **parameters})
