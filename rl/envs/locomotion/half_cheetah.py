"""Run forward on two legs in a plane: Gymnasium's HalfCheetah-v5, with its robot.

Wawrzynski (2009), doi:10.1016/j.neunet.2009.05.011.
"""

from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import model_field
from .runner import Runner


@register("half-cheetah")
@pytree
class HalfCheetah(Runner):
    """Half cheetah: forward velocity minus 0.1 action^2; never terminates.

    Objectives, as in MoRobtrol: both terms.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("half-cheetah").reset(jax.random.key(0))[1].shape
    (17,)
    """

    model: Model = model_field("half_cheetah.xml")
    reset_noise_scale: Array | float = number(default=0.1, least=0)  # [] m, rad and per s

    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        return self._sample_near_rest(key, self.reset_noise_scale, normal=True)
