"""Adapter for environments of gymnax 1.0 and later, whose parameters remain pytree leaves."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import pytree, static

from ..environment import Step
from ..spaces import Box, Discrete, Space


@pytree
class Gymnax:
    """Gymnax environment with this package's protocol."""

    params: Any  # gymnax's parameters, leaves
    inner: Any = static()  # the gymnax environment

    @property
    def observation_space(self) -> Space:
        """Observation space of the gymnax environment."""
        return _from_gymnax_space("observations", self.inner.observation_space(self.params))

    @property
    def action_space(self) -> Space:
        """Action space of the gymnax environment."""
        return _from_gymnax_space("actions", self.inner.action_space(self.params))

    @property
    def differentiable(self) -> bool:
        """True if gymnax propagates gradients through its transitions."""
        return bool(self.inner.transition_gradients_enabled)

    def reset(self, key: Array) -> tuple[Any, Array]:
        """Return an initial state and its observation."""
        observation, state = self.inner.reset_env(key, self.params)
        return jax.tree.map(_to_strong_type, state), _to_strong_type(observation)

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Take one step without gymnax's automatic reset; `success` is unknown, therefore False."""
        observation, new, reward, over, info = self.inner.step_env(key, state, action, self.params)
        cut = jnp.asarray(self.inner.is_truncated(new, self.params), bool)
        new = jax.tree.map(lambda x, old: jnp.asarray(x, old.dtype), new, state)
        info = {"success": jnp.bool_(False)} | info
        reward = jnp.asarray(reward, jnp.float32)
        return Step(new, _to_strong_type(observation), reward, jnp.asarray(over, bool), cut, info)


def from_gymnax(env: Any, params: Any | None = None) -> Gymnax:
    """Wrap `env` of gymnax, with `params` instead of its default parameters.

    Raises:
        TypeError: if `env` is not an environment of gymnax 1.0 or later.
    """
    for name in ("reset_env", "step_env", "is_truncated", "transition_gradients_enabled"):
        if not hasattr(env, name):
            raise TypeError(
                f"from_gymnax: {type(env).__name__} has no {name}; give an environment of "
                "gymnax 1.0 or later, without wrappers"
            )
    return Gymnax(env.default_params if params is None else params, env)


def _from_gymnax_space(what: str, space: Any) -> Space:
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if not hasattr(space, "low"):
        raise TypeError(
            f"from_gymnax: {what} are {type(space).__name__}; they must be a Box or Discrete"
        )
    low, high = np.min(space.low), np.max(space.high)
    if what == "actions" and (np.ptp(space.low) or np.ptp(space.high)):
        raise ValueError(
            f"from_gymnax: actions from {space.low} to {space.high}; the bounds must be the same "
            "for all of them; rescale the actions"
        )
    return Box(float(low), float(high), tuple(space.shape))


def _to_strong_type(x: Any) -> Array:
    """Return an array whose dtype is not weak, as it is after a step."""
    x = jnp.asarray(x)
    return jnp.asarray(x, x.dtype)
