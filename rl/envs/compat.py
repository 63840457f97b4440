"""Surgical Gym's reaching tasks with its rewards: psm-, ecm- and star-reach-compat, kinematic.

Schmidgall, Krieger & Eshraghian (2023), arXiv:2310.04676, from the published files of its tasks.
Actions move targets in -1 ... 1, which map to 1 rad of each joint (STAR: 2 rad) and to 0.127 +-
0.127 m of the insertion; an episode has 399 steps of 10 ms. The goal is normal about a centre.
Departures: joints stand at their targets (there, stiff drives), PSM and ECM have the joints of the
kinematics of the research kit (there, a parallelogram of nine or six), and the centre, which there
hangs on a scene whose measures are not published, is where the tip starts.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import pytree, static
from jaxgpu.rl.arms import ECM, PSM, STAR, Arm, place
from jaxgpu.rl.environment import Step, register
from jaxgpu.rl.envs import armed
from jaxgpu.rl.spaces import Box

DT = 0.01  # s a step


@pytree
class State(armed.State):
    """Arm, goal, and what was asked of the joints."""

    target: Array  # [J] in -1 ... 1
    goal: Array  # [3] m


@register("surgical/psm-reach-compat")
@pytree
class Compat:
    """Minus the sums of absolutes: of tip - goal in m, and small ones of speeds and joints."""

    step: Array | float = 0.01  # [] greatest change of a target a step
    spread: Array | float = 0.05  # [] of the goal in each direction, m
    speed_cost: Array | float = 1e-4  # [] a rad/s or m/s
    joint_cost: Array | float = 0.01  # [] a rad or m
    tolerance: Array | float = 0.005  # [] of success, m
    horizon: Array | int = 399  # [] steps
    swing: float = static(default=1.0)  # rad from the middle of a joint to the target 1
    arm: Arm = static(default=PSM)

    @property
    def observation_space(self) -> Box:
        """Joints, their speeds, tip, targets, tip - goal, in SI units."""
        return Box(-np.inf, np.inf, (3 * self.arm.joints + 6,))

    @property
    def action_space(self) -> Box:
        """Changes of the targets, as fractions of the greatest."""
        return Box(-1.0, 1.0, (self.arm.joints,))

    @property
    def differentiable(self) -> bool:
        """Everywhere but at the limits and where a coordinate of tip - goal vanishes."""
        return True

    def start(self, key: Array) -> tuple[State, Array]:
        """Always the same position, STAR's bent; a random goal."""
        bent = np.array([0.0, 0.5, 0.0, -0.5, 0.0, 0.5, 0.0])
        target = jnp.asarray(bent if self.arm is STAR else np.zeros(self.arm.joints), jnp.float32)
        q = self._joints(target)
        tip, _ = place(self.arm, q)
        goal = tip + self.spread * jax.random.normal(key, (3,), jnp.float32)
        state = State(q, jnp.int32(0), target, goal)
        return state, self._observe(state, jnp.zeros_like(q), tip)

    def advance(self, state: State, action: Array, key: Array) -> Step:
        """Move the targets by `action`, and the joints to them."""
        target = jnp.clip(state.target + self.step * jnp.clip(action, -1, 1), -1, 1)
        q = self._joints(target)
        v = (q - state.q) / DT
        tip, _ = place(self.arm, q)
        off = jnp.abs(tip - state.goal)
        cost = jnp.sum(off) + self.speed_cost * jnp.sum(jnp.abs(v))
        cost = cost + self.joint_cost * jnp.sum(jnp.abs(q))
        new = State(q, state.t + 1, target, state.goal)
        over = new.t >= self.horizon
        distance = armed.apart(tip, state.goal)
        info = {"success": distance < self.tolerance, "distance": distance}
        return Step(new, self._observe(new, v, tip), -cost, jnp.zeros_like(over), over, info)

    def _joints(self, target: Array) -> Array:
        """Where the targets put the joints, within their limits."""
        slides = np.array(self.arm.sliding)
        q = target * jnp.asarray(np.where(slides, 0.127, self.swing), target.dtype)
        q = q + jnp.asarray(np.where(slides, 0.127, 0.0), target.dtype)
        limits = (jnp.asarray(x, target.dtype) for x in (self.arm.lower, self.arm.upper))
        return jnp.clip(q, *limits)

    def _observe(self, state: State, v: Array, tip: Array) -> Array:
        return jnp.concatenate([state.q, v, tip, state.target, tip - state.goal])


@register("surgical/ecm-reach-compat")
def ecm_reach_compat(**parameters: Any) -> Compat:
    """The endoscope manipulator, which pays for the distance alone."""
    return Compat(**{"step": 0.02, "spread": 0.1, **FREE, "arm": ECM, **parameters})


@register("surgical/star-reach-compat")
def star_reach_compat(**parameters: Any) -> Compat:
    """STAR, which pays for the distance and a little for speed."""
    costs = {**FREE, "speed_cost": 1e-3}
    return Compat(**{"spread": 0.15, **costs, "swing": 2.0, "arm": STAR, **parameters})


FREE = {"speed_cost": 0.0, "joint_cost": 0.0}
