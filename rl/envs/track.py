"""Follow a moving point with the tip of a surgical arm: psm-track and star-track, kinematic.

The point is the tip of another arm of the same kind, each of whose joints swings at a frequency of
its own, no faster than `pace` of what the arm can do: it can always be followed.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import pytree, static
from jaxgpu.rl.arms import PSM, STAR, Arm, moved, place, scaled, working
from jaxgpu.rl.environment import Step, register
from jaxgpu.rl.spaces import Box


@pytree
class State:
    """The arm, and the one whose tip is the goal."""

    q: Array  # [J] joints, rad or m
    phase: Array  # [J] of the other arm's joints at the start, rad
    turn: Array  # [J] what the phases gain a step, rad
    t: Array  # [] steps since the start


@pytree
class Track:
    """-20 times the distance in m a step, and 1 where it is less than `tolerance`."""

    speed: Array | float = 0.05  # [] greatest step of a joint, of the range it works in
    pace: Array | float = 0.5  # [] greatest step of the goal's joints, of that
    tolerance: Array | float = 0.005  # [] of success, m
    horizon: Array | int = 200  # [] steps
    arm: Arm = static(default=PSM)

    @property
    def observation_space(self) -> Box:
        """Joints in their range, way to the goal in 5 cm, its last step in 5 mm, tip in 20 cm."""
        return Box(-np.inf, np.inf, (self.arm.joints + 9,))

    @property
    def action_space(self) -> Box:
        """Steps of the joints, as fractions of the greatest."""
        return Box(-1.0, 1.0, (self.arm.joints,))

    @property
    def differentiable(self) -> bool:
        """Everywhere but at the limits and on the goal itself."""
        return True

    def start(self, key: Array) -> tuple[State, Array]:
        """A random position of the arm, and a goal under way from another."""
        low, high = working(self.arm, jnp.float32)
        part, phase, turn = jax.random.uniform(key, (3, self.arm.joints))
        # a joint swings over half of its range: a step is at most a quarter of that range x turn
        turn = 4 * self.pace * self.speed * (2 * turn - 1)
        state = State(low + (high - low) * part, 2 * np.pi * phase, turn, jnp.int32(0))
        return state, self._observe(state, place(self.arm, state.q)[0], self.goal(state))

    def goal(self, state: State, ago: int = 0) -> Array:
        """Where the tip should be, [3] m; or should have been `ago` steps ago."""
        low, high = working(self.arm, state.q.dtype)
        t = (state.t - ago).astype(state.q.dtype)
        swing = jnp.sin(state.phase + state.turn * t)
        return place(self.arm, (low + high) / 2 + (high - low) / 4 * swing)[0]

    def advance(self, state: State, action: Array, key: Array) -> Step:
        """Move the joints by `action` within their range, then the goal by a step."""
        new = State(
            *(moved(self.arm, state.q, action, self.speed), state.phase, state.turn, state.t + 1)
        )
        tip, goal = place(self.arm, new.q)[0], self.goal(new)
        distance = jnp.sqrt(jnp.sum((goal - tip) ** 2) + 1e-12)
        near = distance < self.tolerance
        over = new.t >= self.horizon
        reward = -20 * distance + near.astype(tip.dtype)
        info = {"success": near, "distance": distance}
        observation = self._observe(new, tip, goal)
        return Step(new, observation, reward, jnp.zeros_like(over), over, info)

    def _observe(self, state: State, tip: Array, goal: Array) -> Array:
        step = goal - self.goal(state, 1)
        joints = scaled(self.arm, state.q)
        return jnp.concatenate([joints, 20 * (goal - tip), 200 * step, 5 * tip])


@register("surgical/psm-track")
def psm_track(**parameters: Any) -> Track:
    """The patient-side manipulator, six joints."""
    return Track(**parameters)


@register("surgical/star-track")
def star_track(**parameters: Any) -> Track:
    """The seven joints of STAR."""
    return Track(arm=STAR, **parameters)
