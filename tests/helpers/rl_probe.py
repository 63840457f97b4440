"""An environment that shows whether a truncated episode is taken for a finished one."""

import jax.numpy as jnp
import numpy as np

from jaxgpu.pytree import pytree
from jaxgpu.rl import Box, Step


@pytree
class Probe:
    """Reward 1 at every step, one observation, cut after 20 steps, never over."""

    period: int = 20

    observation_space = Box(-np.inf, np.inf, (1,))
    action_space = Box(-1.0, 1.0, (1,))
    differentiable = True

    def reset(self, key):
        return jnp.int32(0), jnp.zeros(1)

    def step(self, state, action, key):
        over = state + 1 >= self.period
        info = {"success": over}
        return Step(state + 1, jnp.zeros(1), jnp.ones(()), jnp.zeros_like(over), over, info)
