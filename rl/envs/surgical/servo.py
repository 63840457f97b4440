"""Bring the tip of a surgical arm with mass to a point: the reaching tasks, dynamic.

As `reach`, but actions move the targets of servos, and the links follow by their inertia: a step is
20 ms, two steps of `jaxgpu.physics.rigid`. See `bodies` for masses and gains.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.physics import rigid
from jaxgpu.pytree import number, pytree

from ...environment import Step, register
from ...spaces import Box
from . import armed, bodies
from .arms import ECM, STAR, place, scaled, working

SUBSTEPS = 2


@pytree
class State(armed.State):
    """Arm, servos and goal."""

    v: Array  # [J] rad/s or m/s
    target: Array  # [J] of the servos, rad or m
    goal: Array  # [3] m


@register("surgical/psm-reach-dynamic")
@pytree
class Servo(armed.Armed):
    """-20 times the distance in m a step, and 1 where it is less than `tolerance`."""

    dt: Array | float = number(default=0.02, above=0, unit="s")  # [] s a step

    @property
    def observation_space(self) -> Box:
        """Joints and targets in their range, speeds in ranges a s, way to the goal, tip."""
        return Box(-np.inf, np.inf, (3 * self.arm.joints + 6,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """At rest in a random position, and the tip of another for a goal."""
        q, other = self.drawn(key, 2)
        state = State(q, jnp.int32(0), jnp.zeros_like(q), q, place(self.arm, other)[0])
        return state, self._observe(state, place(self.arm, q)[0])

    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the targets by `action`, within their range, and let the arm follow."""
        target = self.moved(state.target, action)
        spec = bodies.simulation(self.arm, self.dt / SUBSTEPS, state.q.dtype)
        body = rigid.State(state.q, state.v)
        for _ in range(SUBSTEPS):
            body = rigid.step(spec, body, target)
        new = State(body.q, state.t + 1, body.v, target, state.goal)
        tip, _ = place(self.arm, new.q)
        return self.judged(new, self._observe(new, tip), armed.apart(state.goal, tip))

    def _observe(self, state: State, tip: Array) -> Array:
        low, high = working(self.arm, state.q.dtype)
        joints = [scaled(self.arm, x) for x in (state.q, state.target)]
        ways = [20 * (state.goal - tip), 5 * tip]
        return jnp.concatenate([*joints, state.v / (high - low), *ways])


@register("surgical/ecm-reach-dynamic")
def ecm_reach_dynamic(**parameters: Any) -> Servo:
    """The endoscope manipulator, four joints."""
    return Servo(arm=ECM, **parameters)


@register("surgical/star-reach-dynamic")
def star_reach_dynamic(**parameters: Any) -> Servo:
    """The seven joints of STAR."""
    return Servo(arm=STAR, **parameters)
