"""An environment as another one has it, for tasks of studies that pay otherwise."""

from typing import Any

from jax import Array

from jaxgpu.inputs.fields import pytree


@pytree
class Wrapped:
    """What an environment is but for its step, which those that are made of it give."""

    env: Any  # the environment

    @property
    def observation_space(self) -> Any:
        """That of the environment."""
        return self.env.observation_space

    @property
    def action_space(self) -> Any:
        """That of the environment."""
        return self.env.action_space

    @property
    def differentiable(self) -> bool:
        """That of the environment."""
        return self.env.differentiable

    def reset(self, key: Array) -> tuple[Any, Any]:
        """That of the environment."""
        return self.env.reset(key)
