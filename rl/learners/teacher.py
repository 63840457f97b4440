"""Teachers: memoryless policies whose actions a student imitates.

Their actions are clipped to the bounds. A non-finite action means that the teacher has none.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import arguments, ranges
from jaxgpu.runs.program import call_checked

from ..environment import Environment
from ..spaces import Box
from ..vector import is_finite
from .networks import clip_action


def query(teacher: Any, env: Environment, observation: Any) -> tuple[Any, Array]:
    """Return the teacher's actions [B, A] and a mask [B] of non-finite actions."""
    advice = clip_action(env.action_space, jax.vmap(teacher)(observation))
    return advice, ~is_finite(advice)


def check(name: str, teacher: Any, env: Environment, observation: Any) -> None:
    """Raise if the teacher cannot label observations of `env`; `name` is the learner's.

    Raises:
        ValueError: if its values are not finite, it does not accept `observation`, or its actions
            are not in the action space.
        TypeError: if it is not a callable pytree, or is recurrent.
    """
    if not callable(teacher) or jax.tree_util.all_leaves([teacher]):
        raise TypeError(
            f"{name}: teacher={arguments.format_value(teacher)}; it must be a learnt policy "
            "without a memory, such as rl.load_policy gives, or jax.tree_util.Partial of a function"
        )
    ranges.check_finite(name, teacher=teacher)
    try:
        advice = call_checked(f"{name}: teacher", teacher, observation)
    except (TypeError, ValueError) as error:
        if str(error).startswith(name):
            raise
        raise ValueError(
            f"{name}: teacher cannot act on an observation of {type(env).__name__}, which is "
            f"{arguments.format_value(observation)}; it must accept this observation"
        ) from error
    space = env.action_space
    kind = jnp.floating if isinstance(space, Box) else jnp.integer
    shape, dtype = jnp.shape(advice), jnp.result_type(advice)
    if shape != space.shape or not jnp.issubdtype(dtype, kind):
        raise ValueError(
            f"{name}: teacher returns {dtype}{list(shape)}; actions of {type(env).__name__} are of "
            f"{space}; it must return one action per observation"
        )
