"""What the learners and loops of `rl` are given, held against what they take: one sentence each."""

import dataclasses
from typing import Any

import jax
import numpy as np

from jaxgpu import ranges

from .environment import Step
from .spaces import Box, Discrete

_LAYERS = ranges.Range(least=1, whole=True)


def widths(default: tuple[int, ...]) -> Any:
    """A static field for the widths of a network's hidden layers, whole numbers of at least 1."""
    return dataclasses.field(default=default, metadata={"static": True, ranges.KEY: _LAYERS})


def check_learner(name: str, learner: Any, env: Any) -> None:
    """Refuse hyper-parameters and environments that cannot be learnt with; `name` is the learner's.

    Raises:
        ValueError: a number out of its range, or observations of another shape than the space's.
        TypeError: no environment, observations that are not one vector, actions that are neither a
            vector nor one of finitely many, or a step that is no `rl.Step` as it must be.
    """
    ranges.check("learn", learner)
    ranges.check("learn", env)
    if isinstance(env, type) or not callable(getattr(env, "reset", None)):
        given = f"the class {env.__name__}" if isinstance(env, type) else f"a {type(env).__name__}"
        raise TypeError(
            f"{name}: env is {given}; it must be an environment, an object with reset and step"
        )
    key = jax.eval_shape(lambda: jax.random.key(0))
    state, observation = jax.eval_shape(env.reset, key)
    kind = type(env).__name__
    leaves = jax.tree.leaves(observation)
    if jax.tree.structure(observation) != jax.tree.structure(0) or leaves[0].ndim != 1:
        found = f"has shape {list(leaves[0].shape)}" if hasattr(observation, "shape") else "is a "
        found += "" if hasattr(observation, "shape") else type(observation).__name__
        raise TypeError(
            f"{name}: an observation of {kind} {found}; it must be one vector; join its parts by "
            "jnp.concatenate, of an image its pixels by x.ravel()"
        )
    told = env.observation_space
    if isinstance(told, Box) and told.shape != leaves[0].shape:
        raise ValueError(
            f"{name}: an observation of {kind} has shape {list(leaves[0].shape)}; its "
            f"observation_space says {list(told.shape)}; they must be the same"
        )
    space = env.action_space
    if not isinstance(space, Discrete) and not (isinstance(space, Box) and len(space.shape) == 1):
        raise TypeError(
            f"{name}: an action of {kind} is of {space}; it must be rl.Discrete(n) or an rl.Box of "
            "shape (n,)"
        )
    action = jax.eval_shape(space.sample, key)
    step = jax.eval_shape(env.step, state, action, key)
    _check_step(f"{name}: a step of {kind}", step)
    reward = step.reward
    if np.shape(reward):
        raise TypeError(
            f"{name}: a reward of {kind} has shape {list(reward.shape)}; it must be one number; "
            "add its parts up, each by its weight"
        )


def _check_step(name: str, step: Any) -> None:
    """Refuse what is no Step, ends that are no truth values, and an info that is no dictionary.

    Raises:
        TypeError: as above.
    """
    if not isinstance(step, Step):
        raise TypeError(
            f"{name} gives a {type(step).__name__}; it must give rl.Step(state, observation, "
            "reward, terminated, truncated, info)"
        )
    for end in ("terminated", "truncated"):
        dtype = getattr(step, end).dtype
        if not np.issubdtype(dtype, np.bool_):
            raise TypeError(f"{name} gives {end} of type {dtype}; it must be bool; compare numbers")
    if not isinstance(step.info, dict):
        raise TypeError(
            f"{name} gives an info that is a {type(step.info).__name__}; it must be a dictionary, "
            "which may be empty: {}"
        )


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1; `name` begins the sentence."""
    ranges.refuse(name, value, ranges.Range(least=1, whole=True, one=True))
