"""A teacher: a policy without a memory that is asked what it would do; it may be at a loss.

Its actions are clipped to their bounds. Where they are not finite it has nothing to say.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import arguments, ranges
from jaxgpu.runs.program import called

from ..environment import Environment
from ..spaces import Box
from ..vector import finite
from .networks import feasible


def asked(teacher: Any, env: Environment, observation: Any) -> tuple[Any, Array]:
    """What it would do where each of B environments is, and [B] bool where it is at a loss."""
    advice = feasible(env.action_space, jax.vmap(teacher)(observation))
    return advice, ~finite(advice)


def check(name: str, teacher: Any, env: Environment, observation: Any) -> None:
    """Refuse a teacher that cannot be asked; `name` is the learner's.

    Raises:
        ValueError: its numbers are not finite, it does not take `observation`, or what it does of
            that is no action.
        TypeError: it is no pytree to be called, or has a memory.
    """
    if not callable(teacher) or jax.tree_util.all_leaves([teacher]):
        raise TypeError(
            f"{name}: teacher={arguments.shown(teacher)}; it must be a learnt policy without a "
            "memory, such as rl.load_policy gives, or jax.tree_util.Partial of a function"
        )
    ranges.finite(name, teacher=teacher)
    try:
        advice = called(f"{name}: teacher", teacher, observation)
    except (TypeError, ValueError) as error:
        if str(error).startswith(name):
            raise
        raise ValueError(
            f"{name}: teacher cannot act on an observation of {type(env).__name__}, which is "
            f"{arguments.shown(observation)}; it must take what this environment gives"
        ) from error
    space = env.action_space
    kind = jnp.floating if isinstance(space, Box) else jnp.integer
    shape, dtype = jnp.shape(advice), jnp.result_type(advice)
    if shape != space.shape or not jnp.issubdtype(dtype, kind):
        raise ValueError(
            f"{name}: teacher gives {dtype}{list(shape)}; actions of {type(env).__name__} are "
            f"of {space}; it must give one of them for one observation"
        )
