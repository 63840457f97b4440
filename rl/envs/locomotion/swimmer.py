"""Swim forward by bending three links: Gymnasium's Swimmer-v5, with its robot.

Coulom (2002), Reinforcement Learning Using Neural Networks, PhD thesis, Grenoble.
"""

from jax import Array

from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import model_field
from .runner import Runner


@register("swimmer")
@pytree
class Swimmer(Runner):
    """Swimmer: velocity along x minus 0.0001 action^2; never terminates.

    Objectives, as in MoRobtrol: both terms.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("swimmer").reset(jax.random.key(0))[1].shape
    (8,)
    """

    model: Model = model_field("swimmer.xml")
    frame_skip: int = size(default=4, least=1)  # steps of the model per step of the task
    ctrl_cost_weight: Array | float = number(default=1e-4, least=0)  # []
    reset_noise_scale: Array | float = number(default=0.1, least=0)  # [] m, rad and per s

    unobserved = 2  # x and y

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        return self._sample_near_rest(key, self.reset_noise_scale)
