"""Adapters that present environments of this package as Gymnasium environments.

Every step is a call from the host, for learners that run there. The learners of this package are
thousands of times faster, because they use the environments directly.
"""

import importlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..environment import Environment, make, names
from ..spaces import Box, Space
from ..vector import vectorize
from .host import HostStepper
from .pool import PooledVector


class _EnvMethods:
    """Mixin of `to_gymnasium` with the methods of gymnasium.Env."""

    metadata = {"render_modes": []}

    def __init__(self, env: Environment):
        self.observation_space = _observation_space(env)
        self.action_space = _to_gymnasium_space(env.action_space)
        self._space, self._host = env.action_space, HostStepper(env.reset)
        self._move = self._host.program(_make_step(env))

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Return the first observation; the same `seed` gives the same one."""
        _seed_generators(self, seed)
        return self._host.begin(seed), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        """Take one step."""
        seen = self._move(_check_actions(self._space, action, ()))
        observation, reward, terminated, truncated, info = seen
        return observation, float(reward), bool(terminated), bool(truncated), info


class _VectorEnvMethods:
    """Mixin of `to_gymnasium_vector` with the methods of gymnasium.vector.VectorEnv."""

    def __init__(self, env: Environment, num_envs: int):
        gym = _import_gymnasium()
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
        self.single_observation_space = _observation_space(env)
        self.single_action_space = _to_gymnasium_space(env.action_space)
        batch = gym.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self._space, copies = env.action_space, PooledVector(vectorize(env, num_envs))
        self._host = HostStepper(copies.reset)
        self._move = self._host.program(copies.step)
        self._fill = self._host.program(copies.fill, kept=True)
        self._pool, self._remaining_path = None, 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Return the first observations of all sub-environments."""
        _seed_generators(self, seed)
        self._remaining_path = 0
        return self._host.begin(seed), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict]:
        """Step all sub-environments; where one ended, `final_obs` has its last observation."""
        actions = _check_actions(self._space, actions, (self.num_envs,))
        if self._remaining_path < self.num_envs:  # At most all sub-environments end in this step.
            self._pool = jax.tree.leaves(self._fill())
            self._remaining_path = len(self._pool[0])
        seen = self._move(actions, self._pool)
        info = seen.info
        if begun := int(seen.begun):
            self._remaining_path -= begun
            done = seen.terminated | seen.truncated
            if done.any():  # otherwise a step gave NaN, which does not end an episode
                info |= {"final_obs": seen.final, "_final_obs": done}
        return seen.observation, seen.reward, seen.terminated, seen.truncated, info


def register_gymnasium() -> None:
    """Register every task of `rl.names()` with gymnasium, for `make` and `make_vec`.

    A slash within a name becomes a dash: `gym.make("jaxgpu/surgical-psm-reach")`, and
    `gym.make_vec("jaxgpu/cartpole", num_envs=64)`. Further keywords are those of `rl.make`.

    Raises:
        ImportError: if gymnasium is not installed.
    """
    gym = _import_gymnasium()
    for task in names():
        gym.register(
            id=f"jaxgpu/{task.replace('/', '-')}",
            entry_point=_make_env,
            vector_entry_point=_make_vector_env,
            kwargs={"task": task},
        )


def _make_env(task: str, render_mode: None = None, **options: Any) -> Any:
    return to_gymnasium(make(task, **options))


def _make_vector_env(task: str, num_envs: int = 1, render_mode: None = None, **options: Any) -> Any:
    return to_gymnasium_vector(make(task, **options), num_envs)


def to_gymnasium(env: Environment) -> Any:
    """Return `env` as a gymnasium.Env.

    Raises:
        ImportError: if gymnasium is not installed.
    """
    return type("Single", (_EnvMethods, _import_gymnasium().Env), {})(env)


def to_gymnasium_vector(env: Environment, num_envs: int) -> Any:
    """Return `num_envs` copies of `env` as a gymnasium.vector.VectorEnv with same-step autoreset.

    Raises:
        ImportError: if gymnasium is not installed.
    """
    return type("Many", (_VectorEnvMethods, _import_gymnasium().vector.VectorEnv), {})(
        env, num_envs
    )


def _import_gymnasium() -> Any:
    try:
        return importlib.import_module("gymnasium")
    except ImportError:
        raise ImportError(
            "to_gymnasium: gymnasium is not installed; pip install gymnasium"
        ) from None


def _observation_space(env: Environment) -> Any:
    """Return the Gymnasium space of the observations; integer images keep their dtype."""
    seen = jax.eval_shape(env.reset, jax.random.key(0))[1]
    space = env.observation_space
    if not isinstance(space, dict):
        return _to_gymnasium_space(space, seen.dtype)
    each = {key: _to_gymnasium_space(space[key], seen[key].dtype) for key in sorted(space)}
    return _import_gymnasium().spaces.Dict(each)


def _to_gymnasium_space(space: Space, dtype: Any = np.float32) -> Any:
    spaces = _import_gymnasium().spaces
    if isinstance(space, Box):
        kind = dtype if np.issubdtype(dtype, np.integer) else np.float32
        return spaces.Box(space.low, space.high, space.shape, kind)
    return spaces.Discrete(space.size)


def _check_actions(space: Space, actions: Any, lead: tuple[int, ...]) -> np.ndarray:
    """Validate one action or a batch of actions, and cast it to the compiled dtype.

    Raises:
        ValueError: if the shape differs, or a value is not in `space`.
        TypeError: if a discrete action is not an integer, or a continuous one is not real.
    """
    given, shape = np.asarray(actions), lead + space.shape
    if given.shape != shape:
        raise ValueError(f"step: actions have shape {given.shape}; it must be {shape}")
    if isinstance(space, Box):
        kinds, said, dtype = "iuf", "real numbers", np.float32
    else:
        kinds, said, dtype = "iu", "whole numbers, of an integer type", np.int32
    if given.dtype.kind not in kinds:
        raise TypeError(f"step: actions are of type {given.dtype}; they must be {said}")
    if isinstance(space, Box):
        with np.errstate(over="ignore"):  # overflow to infinity is rejected by the bounds
            given = given.astype(np.float32)
        good = (given >= space.low) & (given <= space.high)
    else:  # before the cast, which keeps only 32 bits
        good = (given >= 0) & (given < space.size)
    if not good.all():
        for one in given.reshape(-1, *space.shape):
            space.check("step: action", one)
    return given.astype(dtype, copy=False)


def _make_step(env: Environment) -> Callable[..., Any]:
    """Return a function that takes one step: (next state, the results that gymnasium returns)."""

    def take_step(state: Any, action: Any, key: Any) -> tuple[Any, Any]:
        out = env.step(state, action, key)
        return out.state, (out.observation, out.reward, out.terminated, out.truncated, out.info)

    return take_step


def _seed_generators(env: Any, seed: int | None) -> None:
    """Set the random generator that gymnasium's own wrappers use."""
    if seed is not None:
        make = importlib.import_module("gymnasium.utils.seeding").np_random
        env._np_random, env._np_random_seed = make(seed)
