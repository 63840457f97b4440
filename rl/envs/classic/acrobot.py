"""Swing the tip of two links above the bar, driving the elbow: Gymnasium's Acrobot-v1.

Sutton & Barto (2018), Reinforcement Learning, example 11.3 of the first edition.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, STEEL

from ...environment import Step, register
from ...spaces import Box, Discrete
from .drawing import draw_rods, goal_color


@pytree
class State:
    """State of the two links."""

    x: Array  # [4] shoulder and elbow angles from hanging, rad, and their velocities, rad/s
    t: Array  # [] steps since the start


@register("acrobot")
@pytree
class Acrobot:
    """Acrobot: reward -1 per step until the tip is a link above the bar; ends at `max_steps`.

    >>> from jaxgpu import rl
    >>> rl.make("acrobot").reset(jax.random.key(0))[1].shape
    (6,)
    """

    gravity: Array | float = number(default=9.8, unit="m/s^2")  # [] m/s^2
    mass: Array | float = number(default=1.0, above=0, unit="kg")  # [] of each link, kg
    length: Array | float = number(
        default=1.0, above=0, unit="m"
    )  # [] of each link, m; its center of mass is in the middle
    inertia: Array | float = number(
        default=1.0, above=0, unit="kg m^2"
    )  # [] of each link about its center, kg m^2
    torque: Array | float = number(default=1.0, unit="N m")  # [] N m
    dt: Array | float = number(default=0.2, above=0, unit="s")  # [] s
    max_steps: Array | int = number(default=500, least=1, whole=True, unit="steps")  # [] steps

    observation_space = Box(-np.inf, np.inf, (6,))  #: cos, sin of both angles; velocities in rad/s
    action_space = Discrete(3)  #: torque -1, 0 or 1 at the elbow
    differentiable = False  #: discrete actions and a constant reward have no derivative

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start hanging, with all state variables uniform in -0.1 ... 0.1."""
        x = jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1)
        return State(x, jnp.int32(0)), _observe(x)

    def scene(self, state: State) -> Capsules:
        """Return the links and the bar that the tip must pass, green once it has."""
        a, total = state.x[0], state.x[0] + state.x[1]
        elbow = self.length * jnp.sin(a), -self.length * jnp.cos(a)
        tip = elbow[0] + self.length * jnp.sin(total), elbow[1] - self.length * jnp.cos(total)
        color = goal_color(tip[1] > self.length)
        bar = ((-1.2, self.length), (1.2, self.length), 0.045, color)
        links = [((0.0, 0.0), elbow, 0.08, STEEL), (elbow, tip, 0.06, BLUE)]
        return draw_rods([bar, *links], -2.3, 0.5)

    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one step by the classical Runge-Kutta method."""
        torque = self.torque * (action - 1).astype(state.x.dtype)
        x, h = state.x, self.dt
        k1 = self._time_derivative(x, torque)
        k2 = self._time_derivative(x + h / 2 * k1, torque)
        k3 = self._time_derivative(x + h / 2 * k2, torque)
        k4 = self._time_derivative(x + h * k3, torque)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        angles = jnp.mod(x[:2] + np.pi, 2 * np.pi) - np.pi
        speed = jnp.asarray(np.array([4 * np.pi, 9 * np.pi]), x.dtype)
        x = jnp.concatenate([angles, jnp.clip(x[2:], -speed, speed)])
        up = -jnp.cos(x[0]) - jnp.cos(x[0] + x[1]) > 1
        t = state.t + 1
        reward = jnp.where(up, 0.0, -1.0).astype(x.dtype)
        truncated = (t >= self.max_steps) & ~up
        return Step(State(x, t), _observe(x), reward, up, truncated, {"success": up})

    def _time_derivative(self, x: Array, torque: Array) -> Array:
        """Return the time derivative of the state, as in the book by Sutton and Barto."""
        a, b, va, vb = x
        m, l, c, g = self.mass, self.length, self.length / 2, self.gravity
        d1 = m * c**2 + m * (l**2 + c**2 + 2 * l * c * jnp.cos(b)) + 2 * self.inertia
        d2 = m * (c**2 + l * c * jnp.cos(b)) + self.inertia
        phi2 = m * c * g * jnp.sin(a + b)
        phi1 = (
            -m * l * c * (vb + 2 * va) * vb * jnp.sin(b) + (m * c + m * l) * g * jnp.sin(a) + phi2
        )
        bend = torque + d2 / d1 * phi1 - m * l * c * va**2 * jnp.sin(b) - phi2
        ab = bend / (m * c**2 + self.inertia - d2**2 / d1)
        return jnp.stack([va, vb, -(d2 * ab + phi1) / d1, ab])


def _observe(x: Array) -> Array:
    c, s = jnp.cos(x[:2]), jnp.sin(x[:2])
    return jnp.stack([c[0], s[0], c[1], s[1], x[2], x[3]])
