"""Hop forward on one leg: gymnasium's Hopper-v5, on its robot.

Erez, Tassa & Todorov (2012), Infinite-horizon model predictive control for nonlinear periodic
tasks with contacts, Robotics: Science and Systems VII.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import Parts, Robot, State, robot, share, square


@register("hopper")
@pytree
class Hopper(Robot):
    """Speed forward, 1 for being upright, less 0.001 times the action's square.

    Objectives, as in MoRobtrol: speed, height above the start in dm, and thrift, each with the 1.

    >>> import jax
    >>> from jaxgpu import rl
    >>> hopper = rl.make("hopper")
    >>> isinstance(hopper, Hopper), hopper.reset(jax.random.key(0))[1].shape
    (True, (11,))
    """

    model: Model = robot("hopper.xml")
    frame_skip: int = size(default=4, least=1)  # steps of the model in one of the task
    forward_reward_weight: Array | float = number(default=1.0)  # [] s/m
    ctrl_cost_weight: Array | float = number(default=1e-3, least=0)  # []
    healthy_reward: Array | float = number(default=1.0)  # []
    reset_noise_scale: Array | float = number(default=5e-3, least=0)  # [] m, rad and a second

    def _start(self, key: Array) -> tuple[Array, Array]:
        return self._noisy(key, self.reset_noise_scale)

    def _width(self) -> int:
        layout = self.model.layout
        return layout.nq - 1 + layout.nv

    def _observe(self, state: State) -> Array:
        """All coordinates but x, and velocities within 10."""
        return jnp.concatenate([state.body.qpos[1:], jnp.clip(state.body.qvel, -10, 10)])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[Parts, list[Array]]:
        speed = (after.body.qpos[0] - before.body.qpos[0]) / self._dt()
        bonus = share(self._healthy(after), self.healthy_reward)
        parts = {
            "reward_forward": self.forward_reward_weight * speed,
            "reward_ctrl": -self.ctrl_cost_weight * square(ctrl),
            "reward_survive": bonus,
        }
        rise = after.body.qpos[1] - self.model.qpos0[1]
        return parts, [parts["reward_forward"] + bonus, 10 * rise + bonus, bonus - square(ctrl)]

    def _healthy(self, state: State) -> Array:
        """Higher than 0.7 m, within 0.2 rad of upright, and no number of 100 or more."""
        z, angle = state.body.qpos[1], state.body.qpos[2]
        others = jnp.concatenate([state.body.qpos[2:], state.body.qvel])
        return (z > 0.7) & (jnp.abs(angle) < 0.2) & jnp.all(jnp.abs(others) < 100)
