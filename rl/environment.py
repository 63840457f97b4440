"""The protocol of an environment, and environments by name.

An environment is a pytree: its physical parameters are leaves, so that `vmap` over them randomises
the domain, its sizes static. It has two pure methods,

    reset(key) -> (state, observation)
    step(state, action, key) -> Step

and `observation_space`, `action_space` and `differentiable`. A third is optional,

    scene(state) -> render.Capsules, render.Balls, or what else has a method `picture(camera)`

which says what is there to see: films (`pictures.film`), `jaxgpu.show` and depth cameras
(`scene(state).depth(camera)`) come of it. An episode ends in one of two ways:
`terminated`, when nothing of value can follow, and `truncated`, when only the clock has run out and
the value of the last observation still counts. Tasks of this package look at vectors of actions
(`whole_actions`); else both methods take what they are given, and those of `checked(env)`, for
scripts that play by hand, look at all of it first.
"""

import difflib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import explained, on_host
from jaxgpu.inputs.fields import pytree

from .spaces import Space


class Step(NamedTuple):
    """What an action leads to."""

    state: Any  # of the environment after the step
    observation: Any  # [O]; or a picture [H, W, C], or a dictionary of these
    reward: Array  # []; of several objectives [K], which `evaluate` sums and no learner here takes
    terminated: Array  # [] bool: the episode is over for good
    truncated: Array  # [] bool: cut by the clock; the last observation keeps its value
    info: dict[str, Array]  # measurements; `success` [] bool counts in reports, none without it


@runtime_checkable
class Environment(Protocol):
    """What every environment has."""

    @property
    def observation_space(self) -> Space | dict[str, Space]:
        """What `observation` may be; of dictionaries, what stands under each key."""
        ...

    @property
    def action_space(self) -> Space:
        """What `action` may be."""
        ...

    @property
    def differentiable(self) -> bool:
        """Whether rewards have useful derivatives in actions."""
        ...

    def reset(self, key: Array) -> tuple[Any, Any]:
        """A random first state and its observation."""
        ...

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """One step; beyond the end of an episode it is not defined."""
        ...


def whole_actions(step: Callable[..., Step]) -> Callable[..., Step]:
    """A method `step` that refuses an action of another shape than the task's, or with nan.

    Without it an index beyond the end of an array gives its last number. Values are looked at
    outside of programs alone.

    Args:
        step: the method, of a state, an action of the shape of `action_space`, and a key.

    Raises:
        ValueError: when it is called, an action of another shape, or one that is not finite.
        TypeError: what is no number.
    """

    @functools.wraps(step)
    def looked(self: Any, state: Any, action: Any, key: Array) -> Step:
        whole = ranges.numbers("step: action", action, self.action_space.shape)
        return step(self, state, jnp.asarray(whole), key)

    return looked


_REGISTRY: dict[str, Callable[..., Environment]] = {}


@explained
def register[F: Callable[..., Environment]](name: str) -> Callable[[F], F]:
    """Decorator: make an environment, or a function that makes one, known to `make` as `name`.

    >>> from jaxgpu import rl
    >>> _ = rl.register("moon-cartpole")(lambda: rl.make("cartpole", gravity=1.6))
    >>> rl.make("moon-cartpole").gravity
    1.6
    >>> _ = _REGISTRY.pop("moon-cartpole")  # for whoever lists the names next
    """

    def enter(maker: F) -> F:
        _REGISTRY[name] = maker
        return maker

    return enter


@explained
def names() -> list[str]:
    """The names that `make` knows.

    >>> names()[:2]
    ['acrobot', 'ant']
    """
    return sorted(_REGISTRY)


@explained
@on_host
def make(name: str, **parameters: Any) -> Environment:
    """The environment `name`, with `parameters` in place of its defaults.

    Raises:
        ValueError: no environment of that name, no parameter of that name, or a number out of the
            range of its parameter.

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
class Wrapped:
    """The spaces and the start of an environment, for classes that add a step."""

    env: Any  # the environment

    @property
    def observation_space(self) -> Space | dict[str, Space]:
        """That of the environment."""
        return self.env.observation_space

    @property
    def action_space(self) -> Space:
        """That of the environment."""
        return self.env.action_space

    @property
    def differentiable(self) -> bool:
        """That of the environment."""
        return self.env.differentiable

    def reset(self, key: Array) -> tuple[Any, Any]:
        """Return the first state of the environment and its observation."""
        return self.env.reset(key)


@pytree
class Checked(Wrapped):
    """An environment that looks at what it is given; `checked` makes it."""

    @property
    def scene(self) -> Callable[[Any], Any]:
        """That of the environment, where it has one."""
        return self.env.scene

    def reset(self, key: Array) -> tuple[Any, Any]:
        """A random first state and its observation.

        Raises:
            ValueError: a parameter of the environment out of its range.
        """
        refuse_no_environment("reset", self.env)
        ranges.check("reset", self.env)
        return self.env.reset(key)

    def step(self, state: Any, action: Any, key: Array) -> Step:
        """One step, its action checked: the shape always, the values outside of `jit`.

        Raises:
            ValueError: an action of another shape, with nan, or out of bounds.
        """
        self.env.action_space.check("step: action", action)
        return self.env.step(state, jnp.asarray(action), key)


def refuse_no_environment(name: str, env: Any) -> None:
    """Refuse what cannot be reset, such as the name or the class of an environment.

    Raises:
        TypeError: it has no method `reset`.
    """
    if isinstance(env, type) or not callable(getattr(env, "reset", None)):
        given = f"the class {env.__name__}" if isinstance(env, type) else f"a {type(env).__name__}"
        raise TypeError(
            f"{name}: env is {given}; it must be an environment, an object with reset and step"
        )


@explained
@on_host
def checked(env: Environment) -> Checked:
    """`env` with a `reset` and a `step` that refuse parameters and actions out of range.

    Raises:
        TypeError: no environment.

    >>> import jax
    >>> import jaxgpu.rl as rl
    >>> env = rl.checked(rl.make("cartpole"))
    >>> state, _ = env.reset(jax.random.key(0))
    >>> env.step(state, 2, jax.random.key(0))
    Traceback (most recent call last):
    ValueError: step: action is 2; it must be one of 0 ... 1
    """
    refuse_no_environment("checked", env)
    return Checked(env)
