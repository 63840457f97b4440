"""What a sequence of actions is worth in an environment, to be climbed or sampled."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..environment import Environment
from .fading import faded


def cost(
    env: Environment,
    state: Any,
    actions: Array,
    frames: Array | int | None = None,
    fade: Array | float = 1.0,
) -> Array:
    """Minus the sum of rewards over the actions [T, A], from `state`; [].

    Only the first `frames` steps are taken, all of them by default. Differentiable where the
    environment is; a reverse pass keeps one state a step and repeats each step once. With `fade`
    below 1 the gradient looks only so far ahead, as `faded` says.
    """
    steps = actions.shape[0]
    frames = jnp.int32(steps if frames is None else frames)
    key = jax.random.key(0)

    def move(state: Any, action: Array) -> tuple[Any, Array]:
        step = env.step(faded(state, fade), action, key)
        return step.state, step.reward

    def one(carry: tuple[Any, Array], action: Array) -> tuple[tuple[Any, Array], Array]:
        state, t = carry
        rest = lambda state, action: (state, jnp.zeros_like(reward.reward))
        reward = jax.eval_shape(env.step, state, action, key)
        state, gain = jax.lax.cond(t < frames, jax.checkpoint(move), rest, state, action)
        return (state, t + 1), gain

    _, gains = jax.lax.scan(one, (state, jnp.int32(0)), actions)
    return -jnp.sum(gains)


def play(env: Environment, state: Any, actions: Array) -> tuple[Any, Any]:
    """Every state of the actions [T, A], and what each step measured; leaves [T, ...]."""

    def one(state: Any, action: Array) -> tuple[Any, Any]:
        step = env.step(state, action, jax.random.key(0))
        return step.state, (step.state, {"reward": step.reward} | step.info)

    return jax.lax.scan(one, state, actions)[1]
