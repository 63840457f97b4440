"""The environment protocol and the registry of environments.

An environment is a pytree. Its physical parameters are leaves, so that `vmap` over them gives
domain randomization, and its sizes are static. It has two pure methods,

    reset(key) -> (state, observation)
    step(state, action, key) -> Step

and the properties `observation_space`, `action_space` and `differentiable`. A third method is
optional,

    scene(state) -> render.Capsules, render.Balls, or any object with a method `picture(camera)`

It returns the visible geometry, which videos (`pictures.film`), `jaxgpu.show` and depth cameras
(`scene(state).depth(camera)`) use. An episode ends in one of two ways: `terminated`, in a terminal
state, or `truncated`, at the time limit, where the value of the last observation still counts. The
tasks of this package check the shape of vector actions (`check_actions`). Otherwise both methods
accept their arguments unchecked. Those of `checked(env)`, for interactive use, check all of them.
"""

import difflib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.inputs.fields import pytree

from .spaces import Space


class Step(NamedTuple):
    """Result of one environment step."""

    state: Any  # environment state after the step
    observation: Any  # [O]; or an image [H, W, C], or a dictionary of these
    reward: Array  # []; or [K] for K objectives, which `evaluate` sums and no learner here accepts
    terminated: Array  # [] bool: the episode ended in a terminal state
    truncated: Array  # [] bool: the time limit was reached; the last observation keeps its value
    info: dict[str, Array]  # measurements; `success` [] bool is averaged in reports, zero if absent


@runtime_checkable
class Environment(Protocol):
    """Protocol of all environments."""

    @property
    def observation_space(self) -> Space | dict[str, Space]:
        """Space of the observations; for dictionary observations, one space per key."""
        ...

    @property
    def action_space(self) -> Space:
        """Space of the actions."""
        ...

    @property
    def differentiable(self) -> bool:
        """True if derivatives of the reward with respect to actions are useful for learning."""
        ...

    def reset(self, key: Array) -> tuple[Any, Any]:
        """Return a random initial state and its observation."""
        ...

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Advance the environment by one step; undefined after the end of an episode."""
        ...


def check_actions(step: Callable[..., Step]) -> Callable[..., Step]:
    """Wrap `step` so that it rejects actions with NaN or with a shape other than the task's.

    Without this check an index out of range would silently read the last entry of an array. Values
    are checked only outside of compiled programs.

    Args:
        step: method that takes a state, an action of the shape of `action_space`, and a key.

    Raises:
        ValueError: on a call, if the action has another shape or is not finite.
        TypeError: on a call, if the action is not numeric.
    """

    @functools.wraps(step)
    def checked_step(self: Any, state: Any, action: Any, key: Array) -> Step:
        whole = ranges.numbers("step: action", action, self.action_space.shape)
        return step(self, state, jnp.asarray(whole), key)

    return checked_step


_REGISTRY: dict[str, Callable[..., Environment]] = {}


@explain_errors
def register[F: Callable[..., Environment]](name: str) -> Callable[[F], F]:
    """Return a decorator that registers an environment, or its factory, as `name` for `make`.

    >>> from jaxgpu import rl
    >>> _ = rl.register("moon-cartpole")(lambda: rl.make("cartpole", gravity=1.6))
    >>> rl.make("moon-cartpole").gravity
    1.6
    >>> _ = _REGISTRY.pop("moon-cartpole")  # for whoever lists the names next
    """

    def add(maker: F) -> F:
        _REGISTRY[name] = maker
        return maker

    return add


@explain_errors
def names() -> list[str]:
    """Return the sorted names of the registered environments.

    >>> names()[:2]
    ['acrobot', 'ant']
    """
    return sorted(_REGISTRY)


@explain_errors
@on_host
def make(name: str, **parameters: Any) -> Environment:
    """Create the environment `name`, with `parameters` instead of its defaults.

    Raises:
        ValueError: if the name or a parameter is unknown, or a value is out of the range of its
            parameter.

    >>> import jaxgpu.rl as rl
    >>> rl.make("cartpole", gravity=1.6).gravity
    1.6
    """
    if name not in _REGISTRY:
        near = difflib.get_close_matches(name, _REGISTRY, 3, 0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "rl.names() lists them"
        raise ValueError(f"make: no environment {name!r}; {hint}")
    try:
        env = _REGISTRY[name](**parameters)
    except TypeError as error:
        known = ", ".join(getattr(_REGISTRY[name], "__dataclass_fields__", ()))
        raise ValueError(f"make: {name}: {error}; its parameters are {known}") from None
    ranges.check("make", env)
    return env


@pytree
class Wrapper:
    """Base of environment wrappers: forwards spaces and `reset`; subclasses define `step`."""

    env: Any  # the wrapped environment

    @property
    def observation_space(self) -> Space | dict[str, Space]:
        """Observation space of the wrapped environment."""
        return self.env.observation_space

    @property
    def action_space(self) -> Space:
        """Action space of the wrapped environment."""
        return self.env.action_space

    @property
    def differentiable(self) -> bool:
        """True if the wrapped environment is differentiable."""
        return self.env.differentiable

    def reset(self, key: Array) -> tuple[Any, Any]:
        """Return the initial state of the environment and its observation."""
        return self.env.reset(key)


@pytree
class CheckedEnv(Wrapper):
    """Environment that validates its arguments, made by `checked`."""

    @property
    def scene(self) -> Callable[[Any], Any]:
        """The method `scene` of the wrapped environment, if it has one."""
        return self.env.scene

    def reset(self, key: Array) -> tuple[Any, Any]:
        """Return a random initial state and its observation.

        Raises:
            ValueError: if a parameter of the environment is out of its range.
        """
        check_environment("reset", self.env)
        ranges.check("reset", self.env)
        return self.env.reset(key)

    def step(self, state: Any, action: Any, key: Array) -> Step:
        """Take one step after checking the action: its shape always, its values outside of `jit`.

        Raises:
            ValueError: if the action has another shape, contains NaN or is out of bounds.
        """
        self.env.action_space.check("step: action", action)
        return self.env.step(state, jnp.asarray(action), key)


def check_environment(name: str, env: Any) -> None:
    """Raise if `env` has no method `reset`, or is a class instead of an environment.

    Raises:
        TypeError: if it is not an environment.
    """
    if isinstance(env, type) or not callable(getattr(env, "reset", None)):
        given = f"the class {env.__name__}" if isinstance(env, type) else f"a {type(env).__name__}"
        raise TypeError(
            f"{name}: env is {given}; it must be an environment, an object with reset and step"
        )


@explain_errors
@on_host
def add_checks(env: Environment) -> CheckedEnv:
    """Wrap `env` so that `reset` and `step` reject parameters and actions out of range.

    Raises:
        TypeError: if `env` is not an environment.

    >>> import jax
    >>> import jaxgpu.rl as rl
    >>> env = rl.add_checks(rl.make("cartpole"))
    >>> state, _ = env.reset(jax.random.key(0))
    >>> env.step(state, 2, jax.random.key(0))
    Traceback (most recent call last):
    ValueError: step: action is 2; it must be one of 0 ... 1
    """
    check_environment("add_checks", env)
    return CheckedEnv(env)
