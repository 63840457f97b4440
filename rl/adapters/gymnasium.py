"""Environments of this package for libraries that speak gymnasium's language.

Every step is a call from the host: for learners that live there. The learners of this package are
thousands of times faster on the environments themselves.
"""

import importlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..environment import Environment, make, names
from ..spaces import Box, Space
from ..vector import vectorize


class _Single:
    """What `to_gymnasium` adds to gymnasium.Env."""

    metadata = {"render_modes": []}

    def __init__(self, env: Environment):
        self.observation_space = _space(env.observation_space)
        self.action_space = _space(env.action_space)
        self._env, self._key = env, jax.random.key(0)
        self._reset, self._step = jax.jit(_drawn(env.reset)), jax.jit(_drawn(env.step))

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """A first observation; with the same `seed`, the same one."""
        _seed(self, seed)
        self._key, (self._state, observation) = self._reset(self._key)
        return np.asarray(observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """One step."""
        action = _action(self._env.action_space, action)
        self._env.action_space.check("step: action", action)
        self._key, out = self._step(self._key, self._state, action)
        self._state = out.state
        info = {name: np.asarray(x) for name, x in out.info.items()}
        ends = bool(out.terminated), bool(out.truncated)
        return np.asarray(out.observation), float(out.reward), *ends, info


class _Many:
    """What `to_gymnasium_vector` adds to gymnasium.vector.VectorEnv."""

    def __init__(self, env: Environment, num_envs: int):
        gym = _gymnasium()
        self.num_envs, self._key = num_envs, jax.random.key(0)
        self.metadata = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
        self.single_observation_space = _space(env.observation_space)
        self.single_action_space = _space(env.action_space)
        batch = gym.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._env, envs = env, vectorize(env, num_envs, "fresh")
        self._reset, self._step = jax.jit(_drawn(envs.reset)), jax.jit(_drawn(envs.step))

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """First observations of all copies."""
        _seed(self, seed)
        self._key, self._state = self._reset(self._key)
        return np.asarray(self._state.observation), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict]:
        """One step of all copies; where one ended, `final_obs` is its last observation."""
        action = _action(self._env.action_space, actions)
        self._key, (self._state, out) = self._step(self._key, self._state, action)
        ends = np.asarray(out.terminated), np.asarray(out.truncated)
        done = ends[0] | ends[1]
        info = {name: np.asarray(x) for name, x in out.info.items()}
        if done.any():
            info |= {"final_obs": np.asarray(out.final), "_final_obs": done}
        return np.asarray(out.observation), np.asarray(out.reward), *ends, info


def register_gymnasium() -> None:
    """Let gymnasium make every task of `rl.names()`, alone and as a vector of many.

    A slash within a name becomes a dash: `gym.make("jaxgpu/surgical-psm-reach")`, and
    `gym.make_vec("jaxgpu/cartpole", num_envs=64)`. Further keywords are those of `rl.make`.

    Raises:
        ImportError: gymnasium is not installed.
    """
    gym = _gymnasium()
    for task in names():
        gym.register(
            id=f"jaxgpu/{task.replace('/', '-')}",
            entry_point=_made,
            vector_entry_point=_many_made,
            kwargs={"task": task},
        )


def _made(task: str, render_mode: None = None, **options: Any) -> Any:
    return to_gymnasium(make(task, **options))


def _many_made(task: str, num_envs: int = 1, render_mode: None = None, **options: Any) -> Any:
    return to_gymnasium_vector(make(task, **options), num_envs)


def to_gymnasium(env: Environment) -> Any:
    """`env` as a gymnasium.Env.

    Raises:
        ImportError: gymnasium is not installed.
    """
    return type("Single", (_Single, _gymnasium().Env), {})(env)


def to_gymnasium_vector(env: Environment, num_envs: int) -> Any:
    """`num_envs` copies of `env` as a gymnasium.vector.VectorEnv that begins anew in the same step.

    Raises:
        ImportError: gymnasium is not installed.
    """
    return type("Many", (_Many, _gymnasium().vector.VectorEnv), {})(env, num_envs)


def _gymnasium() -> Any:
    try:
        return importlib.import_module("gymnasium")
    except ImportError:
        raise ImportError(
            "to_gymnasium: gymnasium is not installed; pip install gymnasium"
        ) from None


def _space(space: Space) -> Any:
    spaces = _gymnasium().spaces
    if isinstance(space, Box):
        return spaces.Box(space.low, space.high, space.shape, np.float32)
    return spaces.Discrete(space.size)


def _action(space: Space, action: Any) -> Any:
    return np.asarray(action, np.float32 if isinstance(space, Box) else np.int32)


def _drawn(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with a new key as its last argument, and the key to go on with: one call a step."""

    def call(key: Any, *args: Any) -> tuple[Any, Any]:
        key, drawn = jax.random.split(key)
        return key, f(*args, drawn)

    return call


def _seed(env: Any, seed: int | None) -> None:
    """The environment's key, and the generator that gymnasium's own wrappers use."""
    if seed is not None:
        env._key = jax.random.key(seed)
        make = importlib.import_module("gymnasium.utils.seeding").np_random
        env._np_random, env._np_random_seed = make(seed)
