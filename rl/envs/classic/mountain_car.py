"""Rock a weak car out of a valley: Gymnasium's MountainCar-v0 and MountainCarContinuous-v0.

Moore (1990), Efficient Memory-based Learning for Robot Control, PhD thesis, Cambridge.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, STEEL

from ...environment import Step, check_actions, register
from ...spaces import Box, Discrete
from .drawing import draw_rods, goal_color


@pytree
class State:
    """State of the car."""

    x: Array  # [2] position and velocity, in units of the track and of the track per step
    t: Array  # [] steps since the start


@register("mountain-car")
@pytree
class MountainCar:
    """Mountain car: reward -1 per step until the car is on the hill; truncated at `max_steps`.

    >>> from jaxgpu import rl
    >>> rl.make("mountain-car").reset(jax.random.key(0))[1].shape
    (2,)
    """

    power: Array | float = number(default=0.001, least=0)  # [] track per step^2
    gravity: Array | float = number(default=0.0025, least=0)  # [] track per step^2
    goal: Array | float = number(default=0.5, above=-1.2, most=0.6, unit="track")  # [] track
    max_steps: Array | int = number(default=200, least=1, whole=True, unit="steps")  # [] steps

    observation_space = Box(-1.2, 0.6, (2,))  #: position and velocity
    action_space = Discrete(3)  #: accelerate to the left, not at all, or to the right
    differentiable = False  #: discrete actions and a constant reward have no derivative

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at rest near the bottom, at a position uniform in -0.6 ... -0.4."""
        return _reset(key)

    def scene(self, state: State) -> Capsules:
        """Return the hill, the car, and the flag, green once it is reached."""
        return _draw_hill(state.x[0], self.goal)

    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one step."""
        push = self.power * (action - 1).astype(state.x.dtype)
        x, arrived = _advance_car(state.x, push, self.gravity, self.goal)
        t = state.t + 1
        truncated = (t >= self.max_steps) & ~arrived
        return Step(
            State(x, t), x, -jnp.ones((), x.dtype), arrived, truncated, {"success": arrived}
        )


@register("mountain-car-continuous")
@pytree
class MountainCarContinuous:
    """Mountain car: reward 100 on the hill minus 0.1 action^2; truncated at `max_steps`.

    >>> from jaxgpu import rl
    >>> rl.make("mountain-car-continuous").reset(jax.random.key(0))[1].shape
    (2,)
    """

    power: Array | float = number(default=0.0015, least=0)  # [] track per step^2
    gravity: Array | float = number(default=0.0025, least=0)  # [] track per step^2
    goal: Array | float = number(default=0.45, above=-1.2, most=0.6, unit="track")  # [] track
    max_steps: Array | int = number(default=999, least=1, whole=True, unit="steps")  # [] steps

    observation_space = Box(-1.2, 0.6, (2,))  #: position and velocity
    action_space = Box(-1.0, 1.0, (1,))  #: acceleration as a fraction of `power`
    differentiable = False  #: the reward at the hilltop has no gradient

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start at rest near the bottom, at a position uniform in -0.6 ... -0.4."""
        return _reset(key)

    def scene(self, state: State) -> Capsules:
        """Return the hill, the car, and the flag, green once it is reached."""
        return _draw_hill(state.x[0], self.goal)

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one step."""
        x, arrived = _advance_car(state.x, action[0] * self.power, self.gravity, self.goal)
        t = state.t + 1
        reward = jnp.where(arrived, 100.0, 0.0) - 0.1 * action[0] ** 2
        truncated = (t >= self.max_steps) & ~arrived
        return Step(
            State(x, t), x, reward.astype(x.dtype), arrived, truncated, {"success": arrived}
        )


def _reset(key: Array) -> tuple[State, Array]:
    position = jax.random.uniform(key, (), minval=-0.6, maxval=-0.4)
    x = jnp.stack([position, jnp.zeros_like(position)])
    return State(x, jnp.int32(0)), x


def _advance_car(
    x: Array, push: Array, gravity: Array | float, goal: Array | float
) -> tuple[Array, Array]:
    v = jnp.clip(x[1] + push - gravity * jnp.cos(3 * x[0]), -0.07, 0.07)
    position = jnp.clip(x[0] + v, -1.2, 0.6)
    v = jnp.where((position <= -1.2) & (v < 0), 0.0, v)
    return jnp.stack([position, v]), (position >= goal) & (v >= 0)


def _draw_hill(x: Array, flag: Array | float) -> Capsules:
    """Return a car at `x` on the hill of Gymnasium's rendering, and the flag."""
    height = lambda x: 0.45 * jnp.sin(3 * x) + 0.55
    ways = [float(x) for x in np.linspace(-1.2, 0.6, 25)]
    hill = [((a, height(a)), (b, height(b)), 0.015, STEEL) for a, b in zip(ways, ways[1:])]
    pole = ((flag, height(flag)), (flag, height(flag) + 0.2), 0.016, goal_color(x >= flag))
    car = (x, height(x) + 0.06)
    return draw_rods([*hill, pole, (car, car, 0.05, BLUE)], -0.05, 0.2)
