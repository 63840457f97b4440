"""Environments of Brax, and those of MuJoCo Playground, which keep the same protocol."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import pytree, size, static

from ..environment import Step
from ..spaces import Box


@pytree
class Brax:
    """An environment of Brax under this package's protocol; `done` terminates, the clock truncates.

    Give it without Brax's wrappers: they begin anew by themselves, from one cached state.
    """

    inner: Any = static()  # Brax's environment
    # after which an episode is truncated
    max_steps: int = size(default=1000, least=1, unit="steps")
    part: str = static(default="state")  # of observations that are dictionaries
    differentiable: bool = static(default=False)  # whether to learn by its derivatives

    @property
    def observation_space(self) -> Box:
        """Any real numbers."""
        size = self.inner.observation_size
        size = size[self.part] if isinstance(size, dict) else size
        return Box(-np.inf, np.inf, tuple(np.atleast_1d(size).tolist()))

    @property
    def action_space(self) -> Box:
        """-1 ... 1, as all of Brax's."""
        return Box(-1.0, 1.0, (self.inner.action_size,))

    def reset(self, key: Array) -> tuple[Any, Array]:
        """A first state and its observation."""
        state = self.inner.reset(key)
        return (state, jnp.int32(0)), self._observe(state)

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """One step; `success` is that of the metrics, where there is one."""
        new, t = self.inner.step(state[0], action), state[1] + 1
        success = jnp.asarray(new.metrics.get("success", False), bool)
        reward = jnp.asarray(new.reward, jnp.float32)
        over = jnp.asarray(new.done, bool)
        info = {"success": success}
        return Step((new, t), self._observe(new), reward, over, t >= self.max_steps, info)

    def _observe(self, state: Any) -> Array:
        return state.obs[self.part] if isinstance(state.obs, dict) else state.obs


def from_brax(env: Any, max_steps: int = 1000, part: str = "state") -> Brax:
    """`env` of Brax or MuJoCo Playground, cut after `max_steps` steps.

    Args:
        env: without wrappers.
        max_steps: steps.
        part: the observation to learn from, where there are several by name.

    Raises:
        TypeError: not an environment of Brax.
        ValueError: no observation of that name.
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
