"""Swing a pendulum up with a weak actuator: Gymnasium's Pendulum-v1, step for step."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, STEEL

from ...environment import Step, check_actions, register
from ...spaces import Box
from .drawing import draw_rods, goal_color


@pytree
class State:
    """State of the pendulum."""

    angle: Array  # [] from the upright, rad, not wrapped
    angular_velocity: Array  # [] rad/s
    t: Array  # [] steps since the start


@register("pendulum")
@pytree
class Pendulum:
    """Pendulum: cost angle^2 + w^2 / 10 + torque^2 / 1000 per step; ends only at `max_steps`.

    >>> from jaxgpu import rl
    >>> rl.make("pendulum").reset(jax.random.key(0))[1].shape
    (3,)
    """

    gravity: Array | float = number(default=10.0, unit="m/s^2")  # [] m/s^2
    mass: Array | float = number(default=1.0, above=0, unit="kg")  # [] kg
    length: Array | float = number(default=1.0, above=0, unit="m")  # [] m
    dt: Array | float = number(default=0.05, above=0, unit="s")  # [] s
    max_torque: Array | float = number(default=2.0, least=0, unit="N m")  # [] N m
    max_speed: Array | float = number(default=8.0, above=0, unit="rad/s")  # [] rad/s
    max_steps: Array | int = number(default=200, least=1, whole=True, unit="steps")  # [] steps

    observation_space = Box(-np.inf, np.inf, (3,))  #: cos and sin of the angle, velocity in rad/s
    action_space = Box(-1.0, 1.0, (1,))  #: torque as a fraction of `max_torque` (Gymnasium: in N m)
    differentiable = True  #: except at the speed limit and, in the cost, straight down

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at a uniform angle, with an angular velocity uniform in -1 ... 1 rad/s."""
        angle, w = jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0)
        state = State(np.pi * angle, w, jnp.int32(0))
        return state, _observe(state)

    def scene(self, state: State) -> Capsules:
        """Return the pendulum; its bob is orange, and green when it is up."""
        top = self.length * jnp.sin(state.angle), self.length * jnp.cos(state.angle)
        color = goal_color(jnp.cos(state.angle) > 0.95)
        hub = ((0.0, 0.0), (0.0, 0.0), 0.09, BLUE)
        return draw_rods([((0.0, 0.0), top, 0.06, STEEL), hub, (top, top, 0.13, color)], -1.3, 0.5)

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one step of semi-implicit Euler; the cost is that of the previous state."""
        u = self.max_torque * action[0]
        angle, w = state.angle, state.angular_velocity
        from_top = jnp.mod(angle + np.pi, 2 * np.pi) - np.pi
        cost = from_top**2 + 0.1 * w**2 + 0.001 * u**2
        pull = 3 * self.gravity / (2 * self.length) * jnp.sin(angle)
        w = w + (pull + 3 / (self.mass * self.length**2) * u) * self.dt
        w = jnp.clip(w, -self.max_speed, self.max_speed)
        new = State(angle + w * self.dt, w, state.t + 1)
        truncated = new.t >= self.max_steps
        info = {"success": jnp.cos(new.angle) > 0.95}
        return Step(new, _observe(new), -cost, jnp.zeros_like(truncated), truncated, info)


def _observe(state: State) -> Array:
    angle = state.angle
    return jnp.stack([jnp.cos(angle), jnp.sin(angle), state.angular_velocity])
