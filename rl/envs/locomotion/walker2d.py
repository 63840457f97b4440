"""Walk forward on two legs in a plane: Gymnasium's Walker2d-v5, with its robot."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import State, model_field
from .runner import UprightRunner


@register("walker2d")
@pytree
class Walker2d(UprightRunner):
    """Walker2d: forward velocity plus 1 while upright, minus 0.001 action^2.

    Objectives, as in MoRobtrol, each plus 1: velocity reward, and minus action^2.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("walker2d").reset(jax.random.key(0))[1].shape
    (17,)
    """

    model: Model = model_field("walker2d_v5.xml")

    def _is_healthy(self, state: State) -> Array:
        """Return whether the height is in 0.8 ... 2 m and the tilt is below 1 rad."""
        z, angle = state.body.qpos[1], state.body.qpos[2]
        return (z > 0.8) & (z < 2.0) & (jnp.abs(angle) < 1.0)
