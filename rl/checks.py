"""Argument checks of the learners and loops of `rl`; each error is one sentence."""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from jax.tree_util import keystr

from jaxgpu.inputs import arguments, ranges

from .environment import Step, check_environment
from .spaces import Box, Discrete

_LAYERS = ranges.Range(least=1, whole=True)


def layer_widths(default: tuple[int, ...]) -> Any:
    """Declare a static field for the widths of a network's hidden layers, each at least 1."""
    return dataclasses.field(default=default, metadata={"static": True, ranges.RANGE_KEY: _LAYERS})


def check_learner(name: str, learner: Any, env: Any) -> None:
    """Raise if a learner cannot train on an environment; `name` is the learner's name for errors.

    Raises:
        ValueError: if a value is out of its range, or observations differ in shape from their
            space.
        TypeError: if `env` is not an environment, the networks do not support its observations,
            actions are neither a vector nor discrete, or `step` does not return a valid `rl.Step`.
    """
    ranges.check("learn", learner)
    ranges.check("learn", env)
    check_environment(name, env)
    network = getattr(learner, "network", None)
    if network is not None and not isinstance(network, nn.Module):
        raise TypeError(
            f"{name}: network={arguments.format_value(network)}; it must be a flax module, such as "
            "rl.CNN(), or None"
        )
    key = jax.eval_shape(lambda: jax.random.key(0))
    state, observation = jax.eval_shape(env.reset, key)
    kind = type(env).__name__
    _check_observation(f"{name}: an observation of {kind}", learner, env, observation)
    space = env.action_space
    if not isinstance(space, Discrete) and not (isinstance(space, Box) and len(space.shape) == 1):
        raise TypeError(
            f"{name}: the action space of {kind} is {space}; it must be rl.Discrete(n) or an "
            "rl.Box of shape (n,)"
        )
    action = jax.eval_shape(space.sample, key)
    step = jax.eval_shape(env.step, state, action, key)
    _check_step(f"{name}: a step of {kind}", step)
    reward = step.reward
    if np.shape(reward):
        raise TypeError(
            f"{name}: a reward of {kind} has shape {list(reward.shape)}; it must be one number; "
            "sum its weighted parts"
        )


def _check_observation(name: str, learner: Any, env: Any, observation: Any) -> None:
    """Raise if the networks of the learner do not support the observations.

    A learner without a field `network` accepts one vector. Others accept trees of vectors, and also
    of images if a network is given.

    Raises:
        ValueError: if the shape differs from the space's, or a dictionary lacks the required keys.
        TypeError: if a leaf is neither a vector nor an image, or is an image without a network.
    """
    seen = {keystr(at): list(x.shape) for at, x in jax.tree.leaves_with_path(observation)}
    several = hasattr(learner, "network")
    if not several and (list(seen) != [""] or len(seen[""]) != 1):
        found = (
            f"has shape {seen['']}" if list(seen) == [""] else f"is a {type(observation).__name__}"
        )
        raise TypeError(
            f"{name} {found}; it must be one vector; join its parts by jnp.concatenate, and "
            "flatten an image by x.ravel()"
        )
    for at, shape in seen.items():
        if len(shape) not in (1, 3):
            raise TypeError(
                f"{name} has shape {shape}{f' at {at}' if at else ''}; it must be a vector [N] or "
                "an image [H, W, C]; reshape it by x.reshape"
            )
        if len(shape) == 3 and learner.network is None:
            raise TypeError(
                f"{name} has shape {shape}{f' at {at}' if at else ''}, that of an image; without a "
                "network it must be a vector; give the learner network=rl.CNN()"
            )
    told = jax.tree.leaves_with_path(env.observation_space, is_leaf=lambda x: hasattr(x, "shape"))
    said = {keystr(at): list(x.shape) for at, x in told if isinstance(x, Box)}
    for at in sorted({*said, *seen}) if said else ():
        if said.get(at) != seen.get(at):
            raise ValueError(
                f"{name} has shape {seen.get(at)}{f' at {at}' if at else ''}; its "
                f"observation_space says {said.get(at)}; they must be the same"
            )
    for field in ("actor_keys", "critic_keys"):
        keys = getattr(learner, field, None)
        held = list(observation) if isinstance(observation, dict) else []
        if keys is not None and (not keys or not set(keys) <= set(held)):
            raise ValueError(
                f"{name} has the keys {held}; {field}={keys!r}; it must be some of them, or None "
                "for all"
            )


def _check_step(name: str, step: Any) -> None:
    """Raise if `step` is not a Step, its end flags are not boolean, or `info` is not a dictionary.

    Raises:
        TypeError: in each of these cases.
    """
    if not isinstance(step, Step):
        raise TypeError(
            f"{name} returns a {type(step).__name__}; it must return rl.Step(state, observation, "
            "reward, terminated, truncated, info)"
        )
    for end in ("terminated", "truncated"):
        dtype = getattr(step, end).dtype
        if not np.issubdtype(dtype, np.bool_):
            raise TypeError(f"{name} returns {end} of {dtype}; it must be bool; compare numbers")
    if not isinstance(step.info, dict):
        raise TypeError(
            f"{name} returns an info that is a {type(step.info).__name__}; it must be a "
            "dictionary, which may be empty: {}"
        )


def check_count(name: str, value: Any) -> None:
    """Raise unless `value` is an integer of at least 1; `name` starts the error message."""
    ranges.refuse(name, value, ranges.Range(least=1, whole=True, one=True))
