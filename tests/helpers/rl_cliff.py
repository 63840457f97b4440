"""A multi-step task whose reward is nan for half of the actions."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree, size, static


@pytree
class Cliff:
    """Task whose reward is a function of the action; truncated after `steps`, or never if None."""

    pay: Callable[[Any], Any] = static()
    steps: int | None = size(default=None, least=1, none=True)

    observation_space = property(lambda self: rl.Box(-1.0, 1.0, (1,)))
    action_space = property(lambda self: rl.Box(-1.0, 1.0, (1,)))
    differentiable = property(lambda self: False)

    def reset(self, key):
        """Return the initial state."""
        return jnp.int32(0), jnp.ones(1)

    def step(self, state, action, key):
        """Return the next step."""
        over = jnp.bool_(False) if self.steps is None else state + 1 >= self.steps
        return rl.Step(state + 1, jnp.ones(1), self.pay(action[0]), jnp.bool_(False), over, {})
