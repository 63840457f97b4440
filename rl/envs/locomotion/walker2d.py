"""Walk forward on two legs in a plane: gymnasium's Walker2d-v5, on its robot."""

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.rigid.model import Model

from ...environment import register
from .robot import State, robot
from .runner import UprightRunner


@register("walker2d")
@pytree
class Walker2d(UprightRunner):
    """Speed forward, 1 for being upright, less 0.001 times the action's square.

    Objectives, as in MoRobtrol: speed and thrift, each with the 1.

    >>> import jax
    >>> from jaxgpu import rl
    >>> rl.make("walker2d").reset(jax.random.key(0))[1].shape
    (17,)
    """

    model: Model = robot("walker2d_v5.xml")

    def _healthy(self, state: State) -> Array:
        """Between 0.8 and 2 m high, within 1 rad of upright."""
        z, angle = state.body.qpos[1], state.body.qpos[2]
        return (z > 0.8) & (z < 2.0) & (jnp.abs(angle) < 1.0)
