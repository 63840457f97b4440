"""What gymnasium's tasks of robots share: a robot, motors that hold an action, and a clock."""

import dataclasses
from abc import ABC, abstractmethod
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs.fields import number, pytree, size, static
from jaxgpu.physics.rigid import forward, integrators
from jaxgpu.physics.rigid.model import Model, load
from jaxgpu.physics.rigid.models.source import compiled
from jaxgpu.physics.rigid.motion.poses import Poses
from jaxgpu.render import Capsules

from ...environment import Step, whole_actions
from ...spaces import Box
from .drawing import draw_links

Seen = dict[str, Array]
Parts = dict[str, Array]


@pytree
class State:
    """A robot, and what is seen of it."""

    body: forward.State  # of the model
    seen: Seen  # as forces were last evaluated: before the last step of the model has ended
    t: Array  # [] steps since the start


@pytree
class Robot(ABC):
    """A task on a robot. What it pays is the sum of parts, which `info` has by gymnasium's names.

    With `vector` the reward is one of several objectives, which each task names.
    """

    model: Model = dataclasses.field()  # masses, sizes, friction and gains are leaves
    frame_skip: int = size(default=5, least=1)  # steps of the model in one of the task
    max_steps: Array | int = number(default=1000, least=1, whole=True, unit="steps")  # [] steps
    vector: bool = static(default=False)  # rewards of several objectives, [K]

    seen_bodies: ClassVar[dict[str, str]] = {}  # whose positions are seen, by the names there
    differentiable = True  #: piecewise: derivatives jump where contacts begin and end

    @property
    def observation_space(self) -> Box:
        """Vectors without bounds."""
        return Box(-np.inf, np.inf, (self._width(),))

    @property
    def action_space(self) -> Box:
        """Controls of the motors, as fractions of their greatest."""
        return Box(-1.0, 1.0, (self.model.layout.nu,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Near the pose of the file, at random."""
        state = self.begin(*self._start(key))
        return state, self._observe(state)

    def begin(self, qpos: Any, qvel: Any = None) -> State:
        """The first state of an episode at coordinates [Q] and velocities [V] of the robot."""
        body = self.model.init(qpos, qvel)
        return State(body, self._first(body), jnp.int32(0))

    @whole_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """One step, through which the motors hold the action."""
        ctrl = jnp.asarray(action, state.body.qpos.dtype)
        none = jnp.zeros_like(state.body.qvel)

        def go(known: tuple[forward.State, Seen], _: None) -> tuple[tuple, None]:
            return integrators.seen(self.model, known[0], ctrl, none, self._look), None

        (body, seen), _ = lax.scan(go, (state.body, state.seen), None, length=self.frame_skip)
        after = State(body, seen, state.t + 1)
        parts, objectives = self._rewards(state, after, ctrl)
        reward = jnp.stack(objectives) if self.vector else jnp.sum(jnp.stack([*parts.values()]))
        terminated = ~self._healthy(after)
        truncated = (after.t >= self.max_steps) & ~terminated
        info = parts | {"success": self._success(after) & ~terminated}
        return Step(after, self._observe(after), reward, terminated, truncated, info)

    def scene(self, state: State) -> Capsules:
        """Return the links of the robot as capsules."""
        return draw_links(self.model, state.body)

    def _dt(self) -> Array:
        """Seconds of a step."""
        return self.model.option.timestep * self.frame_skip

    def _noisy(self, key: Array, scale: Any, normal: bool = False) -> tuple[Array, Array]:
        """Coordinates and velocities within `scale` of rest; velocities may be normal."""
        rest, (place, speed) = self.model.qpos0, jax.random.split(key)
        draw = lambda key, n: jax.random.uniform(key, (n,), rest.dtype, -1, 1)
        layout = self.model.layout
        qvel = draw(speed, layout.nv)
        if normal:
            qvel = jax.random.normal(speed, (layout.nv,), rest.dtype)
        return rest + scale * draw(place, layout.nq), scale * qvel

    @abstractmethod
    def _start(self, key: Array) -> tuple[Array, Array]:
        """Random first coordinates [Q] and velocities [V]."""

    def _look(self, d: forward.Dynamics) -> Seen:
        """What is seen as forces are evaluated."""
        return self._positions(d.where)

    def _first(self, body: forward.State) -> Seen:
        """What is seen at the start of an episode."""
        return self._positions(self.model.poses(body)) if self.seen_bodies else {}

    def _positions(self, where: Poses) -> Seen:
        index = lambda body: self.model.index("body", body)
        return {name: where.pos[:, index(body)] for name, body in self.seen_bodies.items()}

    @abstractmethod
    def _width(self) -> int:
        """O, the numbers of an observation."""

    @abstractmethod
    def _observe(self, state: State) -> Array:
        """The observation [O]."""

    @abstractmethod
    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[Parts, list[Array]]:
        """Parts of the reward, and the objectives."""

    def _healthy(self, state: State) -> Array:
        """Whether the episode may go on."""
        return jnp.bool_(True)

    def _success(self, state: State) -> Array:
        """Whether all is well: by default, that the episode has come to its end."""
        return state.t >= self.max_steps


@lru_cache(maxsize=16)
def _read(file: str) -> Any:
    return compiled(Path(__file__).parent / "assets" / file)


def robot(file: str, **options: Any) -> Any:
    """A field that is the model of a file among the assets."""
    return dataclasses.field(default_factory=lambda: load(_read(file), **options))


def square(a: Array) -> Array:
    """The sum of squares."""
    return jnp.sum(a * a)


def distance(a: Array, b: Array) -> Array:
    """The distance of two points; its derivative is zero where they meet."""
    far = square(a - b)
    apart = far > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, far, 1)), 0)


def share(healthy: Array, bonus: Array | float) -> Array:
    """The bonus of those that are healthy."""
    return jnp.where(healthy, bonus, jnp.zeros_like(bonus))
