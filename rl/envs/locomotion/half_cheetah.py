"""Run forward on two legs in a plane: gymnasium's HalfCheetah-v5, on its robot.

Wawrzynski (2009), doi:10.1016/j.neunet.2009.05.011.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import Parts, Robot, State, robot, square


@register("half-cheetah")
@pytree
class HalfCheetah(Robot):
    """Speed forward less 0.1 times the action's square; never terminates.

    Objectives, as in MoRobtrol: both parts.

    >>> import jax
    >>> from jaxgpu import rl
    >>> cheetah = rl.make("half-cheetah")
    >>> isinstance(cheetah, HalfCheetah), cheetah.reset(jax.random.key(0))[1].shape
    (True, (17,))
    """

    model: Model = robot("half_cheetah.xml")
    forward_reward_weight: Array | float = number(default=1.0)  # [] s/m
    ctrl_cost_weight: Array | float = number(default=0.1, least=0)  # []
    reset_noise_scale: Array | float = number(default=0.1, least=0)  # [] m, rad and a second

    def _start(self, key: Array) -> tuple[Array, Array]:
        return self._noisy(key, self.reset_noise_scale, normal=True)

    def _width(self) -> int:
        layout = self.model.layout
        return layout.nq - 1 + layout.nv

    def _observe(self, state: State) -> Array:
        """All coordinates but x, and velocities."""
        return jnp.concatenate([state.body.qpos[1:], state.body.qvel])

    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[Parts, list[Array]]:
        speed = (after.body.qpos[0] - before.body.qpos[0]) / self._dt()
        parts = {
            "reward_forward": self.forward_reward_weight * speed,
            "reward_ctrl": -self.ctrl_cost_weight * square(ctrl),
        }
        return parts, [*parts.values()]
