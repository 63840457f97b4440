"""What tasks of running share: they pay for speed along x and charge for the action."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size

from .robot import Parts, Robot, State, share, square


@pytree
class Runner(Robot):
    """A task that pays for speed, on a robot whose coordinates begin with its position."""

    forward_reward_weight: Array | float = number(default=1.0)  # [] s/m
    ctrl_cost_weight: Array | float = number(default=0.1, least=0)  # []

    unobserved = 1  # first coordinates, which are not observed: x, or x and y

    def _width(self) -> int:
        layout = self.model.layout
        return layout.nq - self.unobserved + layout.nv

    def _observe(self, state: State) -> Array:
        """The other coordinates, and velocities."""
        return jnp.concatenate([state.body.qpos[self.unobserved :], state.body.qvel])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[Parts, list[Array]]:
        parts = self._parts(self._speed(before, after), ctrl)
        return parts, [*parts.values()]

    def _speed(self, before: State, after: State) -> Array:
        return (after.body.qpos[0] - before.body.qpos[0]) / self._dt()

    def _parts(self, speed: Array, ctrl: Array) -> Parts:
        return {
            "reward_forward": self.forward_reward_weight * speed,
            "reward_ctrl": -self.ctrl_cost_weight * square(ctrl),
        }


@pytree
class UprightRunner(Runner):
    """A runner in a plane that is paid for being upright, too."""

    frame_skip: int = size(default=4, least=1)  # steps of the model in one of the task
    ctrl_cost_weight: Array | float = number(default=1e-3, least=0)  # []
    healthy_reward: Array | float = number(default=1.0)  # []
    reset_noise_scale: Array | float = number(default=5e-3, least=0)  # [] m, rad and a second

    def _start(self, key: Array) -> tuple[Array, Array]:
        return self._noisy(key, self.reset_noise_scale)

    def _observe(self, state: State) -> Array:
        """All coordinates but x, and velocities within 10."""
        return jnp.concatenate([state.body.qpos[1:], jnp.clip(state.body.qvel, -10, 10)])

    def _upright_parts(self, before: State, after: State, ctrl: Array) -> Parts:
        speed = self._speed(before, after)
        bonus = share(self._healthy(after), self.healthy_reward)
        return self._parts(speed, ctrl) | {"reward_survive": bonus}

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[Parts, list[Array]]:
        parts = self._upright_parts(before, after, ctrl)
        bonus = parts["reward_survive"]
        return parts, [parts["reward_forward"] + bonus, bonus - square(ctrl)]
