"""Adapter for environments of Brax and of MuJoCo Playground, which has the same protocol."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import pytree, size, static

from ..environment import Step
from ..spaces import Box


@pytree
class Brax:
    """Brax environment with this package's protocol; `done` terminates, `max_steps` truncates.

    Pass it without Brax's wrappers, which reset automatically to one cached state.
    """

    inner: Any = static()  # the Brax environment
    # steps after which an episode is truncated
    max_steps: int = size(default=1000, least=1, unit="steps")
    part: str = static(default="state")  # key of the observation, if they are dictionaries
    differentiable: bool = static(default=False)  # whether its derivatives are used for learning

    @property
    def observation_space(self) -> Box:
        """Unbounded box of the observation's shape."""
        size = self.inner.observation_size
        size = size[self.part] if isinstance(size, dict) else size
        return Box(-np.inf, np.inf, tuple(np.atleast_1d(size).tolist()))

    @property
    def action_space(self) -> Box:
        """Box -1 ... 1, as in all Brax environments."""
        return Box(-1.0, 1.0, (self.inner.action_size,))

    def reset(self, key: Array) -> tuple[Any, Array]:
        """Return an initial state and its observation."""
        state = self.inner.reset(key)
        return (state, jnp.int32(0)), self._observe(state)

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Take one step; `success` is taken from the metrics if present."""
        new, t = self.inner.step(state[0], action), state[1] + 1
        success = jnp.asarray(new.metrics.get("success", False), bool)
        reward = jnp.asarray(new.reward, jnp.float32)
        over = jnp.asarray(new.done, bool)
        info = {"success": success}
        return Step((new, t), self._observe(new), reward, over, t >= self.max_steps, info)

    def _observe(self, state: Any) -> Array:
        return state.obs[self.part] if isinstance(state.obs, dict) else state.obs


def from_brax(env: Any, max_steps: int = 1000, part: str = "state") -> Brax:
    """Wrap an environment of Brax or MuJoCo Playground, truncated after `max_steps` steps.

    Args:
        env: environment without wrappers.
        max_steps: time limit of an episode, steps.
        part: key of the observation to learn from, if there are several.

    Raises:
        TypeError: if `env` is not an environment of Brax.
        ValueError: if there is no observation of that name.
    """
    for name in ("reset", "step", "observation_size", "action_size"):
        if not hasattr(env, name):
            raise TypeError(
                f"from_brax: {type(env).__name__} has no {name}; give an environment of Brax or "
                "MuJoCo Playground"
            )
    size = env.observation_size
    if isinstance(size, dict) and part not in size:
        raise ValueError(f"from_brax: no observation {part!r}; there are {', '.join(size)}")
    return Brax(env, max_steps, part)
