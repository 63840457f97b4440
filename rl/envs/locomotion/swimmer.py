"""Swim forward by bending three links: gymnasium's Swimmer-v5, on its robot.

Coulom (2002), Reinforcement Learning Using Neural Networks, PhD thesis, Grenoble.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import Parts, Robot, State, robot, square


@register("swimmer")
@pytree
class Swimmer(Robot):
    """Speed along x less 0.0001 times the action's square; never terminates.

    Objectives, as in MoRobtrol: both parts.

    >>> import jax
    >>> from jaxgpu import rl
    >>> swimmer = rl.make("swimmer")
    >>> isinstance(swimmer, Swimmer), swimmer.reset(jax.random.key(0))[1].shape
    (True, (8,))
    """

    model: Model = robot("swimmer.xml")
    frame_skip: int = size(default=4, least=1)  # steps of the model in one of the task
    forward_reward_weight: Array | float = number(default=1.0)  # [] s/m
    ctrl_cost_weight: Array | float = number(default=1e-4, least=0)  # []
    reset_noise_scale: Array | float = number(default=0.1, least=0)  # [] m, rad and a second

    def _start(self, key: Array) -> tuple[Array, Array]:
        return self._noisy(key, self.reset_noise_scale)

    def _width(self) -> int:
        layout = self.model.layout
        return layout.nq - 2 + layout.nv

    def _observe(self, state: State) -> Array:
        """All coordinates but x and y, and velocities."""
        return jnp.concatenate([state.body.qpos[2:], state.body.qvel])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[Parts, list[Array]]:
        speed = (after.body.qpos[0] - before.body.qpos[0]) / self._dt()
        parts = {
            "reward_forward": self.forward_reward_weight * speed,
            "reward_ctrl": -self.ctrl_cost_weight * square(ctrl),
        }
        return parts, [*parts.values()]
