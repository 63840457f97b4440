"""Balance a pole on a cart by pushing left or right: Gymnasium's CartPole-v1, step for step.

Barto, Sutton & Anderson (1983), doi:10.1109/TSMC.1983.6313077.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree, static
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, ORANGE, STEEL

from ...environment import Step, register
from ...spaces import Box, Discrete
from .drawing import draw_rods


@pytree
class State:
    """State of cart and pole."""

    x: Array  # [4] cart m, its velocity m/s, pole rad, its angular velocity rad/s
    t: Array  # [] steps since the start


@register("cartpole")
@pytree
class CartPole:
    """Cart-pole: reward 1 per step within 12 degrees and 2.4 m; truncated at `max_steps`.

    >>> from jaxgpu import rl
    >>> moon = rl.make("cartpole", gravity=1.6)
    >>> moon.reset(jax.random.key(0))[1].shape
    (4,)
    """

    gravity: Array | float = number(default=9.8, unit="m/s^2")  # [] m/s^2
    cart_mass: Array | float = number(default=1.0, above=0, unit="kg")  # [] kg
    pole_mass: Array | float = number(default=0.1, above=0, unit="kg")  # [] kg
    half_length: Array | float = number(default=0.5, above=0, unit="m")  # [] of the pole, m
    force: Array | float = number(default=10.0, unit="N")  # [] N
    dt: Array | float = number(default=0.02, above=0, unit="s")  # [] s
    max_steps: Array | int = number(default=500, least=1, whole=True, unit="steps")  # [] steps
    masked: bool = static(default=False)  # hide the velocities, so that memory is needed

    action_space = Discrete(2)  #: 0 pushes to the left, 1 to the right
    differentiable = False  #: discrete actions and a constant reward have no derivative

    @property
    def observation_space(self) -> Box:
        """Box of position and angle, with their velocities unless `masked`."""
        return Box(-np.inf, np.inf, (2 if self.masked else 4,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start with all four state variables uniform in -0.05 ... 0.05."""
        x = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)
        return State(x, jnp.int32(0)), self._observe(x)

    def scene(self, state: State) -> Capsules:
        """Return the cart in blue on its track in steel, and the pole in orange."""
        x, _, angle, _ = state.x
        far = 2 * self.half_length
        tip = x + far * jnp.sin(angle), 0.1 + far * jnp.cos(angle)
        track = ((-2.4, -0.1), (2.4, -0.1), 0.02, STEEL)
        cart = ((x - 0.15, 0.0), (x + 0.15, 0.0), 0.1, BLUE)
        return draw_rods([track, cart, ((x, 0.1), tip, 0.045, ORANGE)], -0.14, 0.5)

    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one step of explicit Euler."""
        _, v, angle, w = state.x
        s, c = jnp.sin(angle), jnp.cos(angle)
        force = jnp.where(action == 1, self.force, -self.force).astype(v.dtype)
        total = self.cart_mass + self.pole_mass
        pull = (force + self.pole_mass * self.half_length * w * w * s) / total
        spin = self.gravity * s - c * pull
        spin = spin / (self.half_length * (4 / 3 - self.pole_mass * c * c / total))
        push = pull - self.pole_mass * self.half_length * spin * c / total
        x = state.x + self.dt * jnp.stack([v, push, w, spin])
        t = state.t + 1
        fallen = (jnp.abs(x[0]) > 2.4) | (jnp.abs(x[2]) > 12 * np.pi / 180)
        truncated = t >= self.max_steps
        info = {"success": truncated}
        reward = jnp.ones((), x.dtype)
        return Step(State(x, t), self._observe(x), reward, fallen, truncated, info)

    def _observe(self, x: Array) -> Array:
        return x[::2] if self.masked else x


@register("cartpole-masked")
def make_cartpole_masked(**parameters: Any) -> CartPole:
    """Make a CartPole that hides the velocities."""
    return CartPole(masked=True, **parameters)
