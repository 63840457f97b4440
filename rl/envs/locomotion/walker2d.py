"""Walk forward on two legs in a plane: gymnasium's Walker2d-v5, on its robot."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import Parts, Robot, State, robot, share, square


@register("walker2d")
@pytree
class Walker2d(Robot):
    """Speed forward, 1 for being upright, less 0.001 times the action's square.

    Objectives, as in MoRobtrol: speed and thrift, each with the 1.

    >>> import jax
    >>> from jaxgpu import rl
    >>> walker = rl.make("walker2d")
    >>> isinstance(walker, Walker2d), walker.reset(jax.random.key(0))[1].shape
    (True, (17,))
    """

    model: Model = robot("walker2d_v5.xml")
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
        return parts, [parts["reward_forward"] + bonus, bonus - square(ctrl)]

    def _healthy(self, state: State) -> Array:
        """Between 0.8 and 2 m high, within 1 rad of upright."""
        z, angle = state.body.qpos[1], state.body.qpos[2]
        return (z > 0.8) & (z < 2.0) & (jnp.abs(angle) < 1.0)
