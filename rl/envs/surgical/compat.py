"""Surgical Gym's reaching tasks as published: psm-, ecm- and star-reach-compat.

Schmidgall, Krieger & Eshraghian (2023), arXiv:2310.04676; arms, drives and places are in `rigs`.
Actions move targets in -1 ... 1, and drives bring the joints to them; the goal is normal about a
fixed centre, and an episode has 399 steps. Departures: a drive's damping is taken for so much
greater than inertia and weight that the joint follows by the first-order law (it is, by 10^4,
but for STAR's shoulder); the two fingers, which stay shut, are left out; every copy begins with a
goal of its own (there, a new beginning of one draws the goals of all anew). STAR's arm is that of
`arms`, and its tool does not turn.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree, static

from ...environment import Step, register
from ...spaces import Box, real
from . import armed
from .arms import Arm, place
from .rigs import ECM_RIG, PSM_RIG, STAR_RIG, Rig


@pytree
class State(armed.State):
    """Arm, goal, and what was asked of the joints."""

    rest: Array  # [I] joints that do not move the tip, rad
    target: Array  # [J + I] in -1 ... 1
    goal: Array  # [3] m


@register("surgical/psm-reach-compat")
@pytree
class Compat:
    """Minus the sums of absolutes: of tip - goal in m, and small ones of speeds and joints."""

    speed: Array | float = number(default=0.01, above=0)  # [] greatest change of a target a step
    spread: Array | float = number(
        default=0.05, least=0, unit="m"
    )  # [] of the goal in each direction, m
    speed_cost: Array | float = number(default=1e-4, least=0)  # [] a rad/s or m/s
    joint_cost: Array | float = number(default=0.01, least=0)  # [] a rad or m
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] of success, m
    horizon: Array | int = number(default=399, least=1, whole=True, unit="steps")  # [] steps
    rig: Rig = static(default=PSM_RIG)

    @property
    def arm(self) -> Arm:
        """The joints that move the tip."""
        return self.rig.arm

    @property
    def observation_space(self) -> Box:
        """Joints, their speeds, tip, targets, tip - goal, in SI units."""
        return Box(-np.inf, np.inf, (3 * len(self.rig.scale) + 6,))

    @property
    def action_space(self) -> Box:
        """Changes of the targets, as fractions of the greatest."""
        return Box(-1.0, 1.0, (len(self.rig.scale),))

    @property
    def differentiable(self) -> bool:
        """Everywhere but at the limits and where a coordinate of tip - goal vanishes."""
        return True

    def reset(self, key: Array) -> tuple[State, Array]:
        """Always the same position; a random goal."""
        target = jnp.asarray(self.rig.start, real())
        joints = target * jnp.asarray(self.rig.scale, real())
        goal = jnp.asarray(self.rig.centre, real())
        goal = goal + self.spread * jax.random.normal(key, (3,), real())
        state = self._state(joints, jnp.int32(0), target, goal)
        return state, self._observe(state, jnp.zeros_like(joints))

    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the targets by `action`; the drives follow."""
        rig, joints = self.rig, jnp.concatenate([state.q, state.rest])
        fixed = lambda x: jnp.asarray(x, joints.dtype)
        target = jnp.clip(state.target + self.speed * jnp.clip(action, -1, 1), -1, 1)
        way = fixed(rig.scale) * target + fixed(rig.offset) - joints
        share = rig.dt * np.array(rig.rate)  # of the way, by implicit Euler
        v = jnp.clip(
            fixed(share / (1 + share) / rig.dt) * way, -fixed(rig.fastest), fixed(rig.fastest)
        )
        after = jnp.clip(joints + rig.dt * v, fixed(rig.lower), fixed(rig.upper))
        v = (after - joints) / rig.dt
        new = self._state(after, state.t + 1, target, state.goal)
        seen = self._observe(new, v)
        off = seen[-3:]
        cost = jnp.sum(jnp.abs(off)) + self.speed_cost * jnp.sum(jnp.abs(v))
        cost = cost + self.joint_cost * jnp.sum(jnp.abs(after))
        over = new.t >= self.horizon
        distance = armed.apart(off, jnp.zeros_like(off))
        info = {"success": distance < self.tolerance, "distance": distance}
        return Step(new, seen, -cost, jnp.zeros_like(over), over, info)

    def _state(self, joints: Array, t: Array, target: Array, goal: Array) -> State:
        return State(joints[: self.arm.joints], t, joints[self.arm.joints :], target, goal)

    def _observe(self, state: State, v: Array) -> Array:
        tip, _ = place(self.arm, state.q)
        return jnp.concatenate([state.q, state.rest, v, tip, state.target, tip - state.goal])


@register("surgical/ecm-reach-compat")
def ecm_reach_compat(**parameters: Any) -> Compat:
    """The endoscope manipulator, which pays for the distance alone; goals are out of its reach."""
    return Compat(**{"speed": 0.02, "spread": 0.1, **FREE, "rig": ECM_RIG, **parameters})


@register("surgical/star-reach-compat")
def star_reach_compat(**parameters: Any) -> Compat:
    """STAR, which pays for the distance and a little for speed."""
    return Compat(**{"spread": 0.15, **FREE, "speed_cost": 1e-3, "rig": STAR_RIG, **parameters})


FREE = {"speed_cost": 0.0, "joint_cost": 0.0}
