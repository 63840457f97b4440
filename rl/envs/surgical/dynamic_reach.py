"""Bring the tip of a surgical arm with mass to a point: the reaching tasks with dynamics.

As `reach`, but actions move the targets of servos, and the links follow with inertia. A step is
20 ms, two steps of `jaxgpu.physics.rigid`. See `dynamics` for masses and gains.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree

from ...environment import Step, check_actions, register
from ...spaces import Box
from . import arm_task, dynamics
from .arms import ECM, STAR
from .dynamics import ECM_DYNAMICS, PSM_DYNAMICS, STAR_DYNAMICS, ArmDynamics
from .kinematics import forward_kinematics

SUBSTEPS = 2


@pytree
class State(arm_task.State):
    """State of arm, servos and goal."""

    v: Array  # [J] rad/s or m/s
    target: Array  # [J] of the servos, rad or m
    goal: Array  # [3] m


@register("surgical/psm-reach-dynamic")
@pytree
class DynamicReach(arm_task.ArmTask):
    """Reaching task with dynamics: reward -20 distance per step in m, plus 1 within `tolerance`.

    >>> import jax
    >>> DynamicReach().reset(jax.random.key(0))[1].shape
    (24,)
    """

    dt: Array | float = number(default=0.02, above=0, unit="s")  # [] s per step
    dynamics: ArmDynamics = PSM_DYNAMICS  # of the same arm

    @property
    def observation_space(self) -> Box:
        """Joints and targets in their range, velocities in ranges per s, vector to goal, tip."""
        return Box(-np.inf, np.inf, (3 * self.arm.joints + 6,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at rest in a random position, with the tip of another one as goal."""
        q, other = self.random_joints(key, 2)
        state = State(
            q=q,
            t=jnp.int32(0),
            v=jnp.zeros_like(q),
            target=q,
            goal=forward_kinematics(self.arm, other)[0],
        )
        return state, self._observe(state, forward_kinematics(self.arm, q)[0])

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the targets by `action`, within their range, and let the arm follow."""
        target = self.arm.step_joints(state.target, action, self.speed)
        arm = dynamics.mechanism(self.arm, self.dynamics, self.dt / SUBSTEPS, state.q.dtype)
        body = arm.init(state.q, state.v)
        for _ in range(SUBSTEPS):
            body = arm.step(body, target)
        new = State(q=body.qpos, t=state.t + 1, v=body.qvel, target=target, goal=state.goal)
        tip, _ = forward_kinematics(self.arm, new.q)
        return self.outcome(new, self._observe(new, tip), arm_task.distance(state.goal, tip))

    def _observe(self, state: State, tip: Array) -> Array:
        low, high = self.arm.working_range(state.q.dtype)
        joints = [self.arm.normalize(x) for x in (state.q, state.target)]
        ways = [20 * (state.goal - tip), 5 * tip]
        return jnp.concatenate([*joints, state.v / (high - low), *ways])


@register("surgical/ecm-reach-dynamic")
def make_ecm_reach_dynamic(**parameters: Any) -> DynamicReach:
    """Make the reaching task of the endoscope manipulator, with four joints."""
    return DynamicReach(**{"arm": ECM, "dynamics": ECM_DYNAMICS, **parameters})


@register("surgical/star-reach-dynamic")
def make_star_reach_dynamic(**parameters: Any) -> DynamicReach:
    """Make the reaching task of STAR, with seven joints."""
    return DynamicReach(**{"arm": STAR, "dynamics": STAR_DYNAMICS, **parameters})
