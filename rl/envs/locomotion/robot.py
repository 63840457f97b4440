"""Base class of Gymnasium's robot tasks: a model, actuators that hold an action, a time limit."""

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
from jaxgpu.physics.rigid.models.source import compile_model
from jaxgpu.physics.rigid.motion.poses import Poses
from jaxgpu.render import Capsules

from ...environment import Step, check_actions
from ...spaces import Box
from .drawing import draw_links

Measurements = dict[str, Array]
RewardTerms = dict[str, Array]


@pytree
class State:
    """State of a robot, and measurements of it."""

    body: forward.State  # state of the model
    seen: Measurements  # from the last evaluation of forces, before the last model step ends
    t: Array  # [] steps since the start


@pytree
class Robot(ABC):
    """Base class of robot tasks. The reward is a sum of terms with Gymnasium's names in `info`.

    With `vector` the reward is a vector of several objectives, documented by each task.
    """

    model: Model = dataclasses.field()  # masses, sizes, friction and gains are leaves
    frame_skip: int = size(default=5, least=1)  # steps of the model per step of the task
    max_steps: Array | int = number(default=1000, least=1, whole=True, unit="steps")  # [] steps
    vector: bool = static(default=False)  # return several objectives as reward, [K]

    seen_bodies: ClassVar[dict[str, str]] = {}  # bodies whose positions are measured, by key
    differentiable = True  #: piecewise: derivatives jump where contacts start and end

    @property
    def observation_space(self) -> Box:
        """Unbounded box [O]."""
        return Box(-np.inf, np.inf, (self._observation_size(),))

    @property
    def action_space(self) -> Box:
        """Box of the actuators' controls, as fractions of their maximum."""
        return Box(-1.0, 1.0, (self.model.layout.nu,))

    def reset(self, key: Array) -> tuple[State, Array]:
        """Start close to the pose of the file, at random."""
        state = self.begin(*self._sample_start(key))
        return state, self._observe(state)

    def begin(self, qpos: Any, qvel: Any = None) -> State:
        """Return the initial state at coordinates [Q] and velocities [V] of the robot."""
        body = self.model.init(qpos, qvel)
        return State(body, self._initial_measurements(body), jnp.int32(0))

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one step, during which the actuators hold the action."""
        ctrl = jnp.asarray(action, state.body.qpos.dtype)
        none = jnp.zeros_like(state.body.qvel)

        def substep(known: tuple[forward.State, Measurements], _: None) -> tuple[tuple, None]:
            return integrators.step_and_look(self.model, known[0], ctrl, none, self._measure), None

        (body, seen), _ = lax.scan(substep, (state.body, state.seen), None, length=self.frame_skip)
        after = State(body, seen, state.t + 1)
        parts, objectives = self._rewards(state, after, ctrl)
        reward = jnp.stack(objectives) if self.vector else jnp.sum(jnp.stack([*parts.values()]))
        terminated = ~self._is_healthy(after)
        truncated = (after.t >= self.max_steps) & ~terminated
        info = parts | {"success": self._is_success(after) & ~terminated}
        return Step(after, self._observe(after), reward, terminated, truncated, info)

    def scene(self, state: State) -> Capsules:
        """Return the links of the robot as capsules."""
        return draw_links(self.model, state.body)

    def _dt(self) -> Array:
        """Return the duration of a step, s."""
        return self.model.option.timestep * self.frame_skip

    def _sample_near_rest(
        self, key: Array, scale: Any, normal: bool = False
    ) -> tuple[Array, Array]:
        """Return coordinates and velocities within `scale` of rest; velocities may be normal."""
        rest, (place, speed) = self.model.qpos0, jax.random.split(key)
        sample = lambda key, n: jax.random.uniform(key, (n,), rest.dtype, -1, 1)
        layout = self.model.layout
        qvel = sample(speed, layout.nv)
        if normal:
            qvel = jax.random.normal(speed, (layout.nv,), rest.dtype)
        return rest + scale * sample(place, layout.nq), scale * qvel

    @abstractmethod
    def _sample_start(self, key: Array) -> tuple[Array, Array]:
        """Sample initial coordinates [Q] and velocities [V]."""

    def _measure(self, d: forward.Dynamics) -> Measurements:
        """Return the measurements taken when forces are evaluated."""
        return self._body_positions(d.where)

    def _initial_measurements(self, body: forward.State) -> Measurements:
        """Return the measurements at the start of an episode."""
        return self._body_positions(self.model.poses(body)) if self.seen_bodies else {}

    def _body_positions(self, where: Poses) -> Measurements:
        index = lambda body: self.model.index("body", body)
        return {name: where.pos[:, index(body)] for name, body in self.seen_bodies.items()}

    @abstractmethod
    def _observation_size(self) -> int:
        """Return O, the length of an observation."""

    @abstractmethod
    def _observe(self, state: State) -> Array:
        """Return the observation [O]."""

    @abstractmethod
    def _rewards(self, before: State, after: State, ctrl: Array) -> tuple[RewardTerms, list[Array]]:
        """Return the terms of the reward by name, and the objectives of a multi-objective task."""

    def _is_healthy(self, state: State) -> Array:
        """Return whether the robot is healthy, so that the episode does not terminate."""
        return jnp.bool_(True)

    def _is_success(self, state: State) -> Array:
        """Return the success flag: by default, that the episode reached its time limit."""
        return state.t >= self.max_steps


@lru_cache(maxsize=16)
def _compile_asset(file: str) -> Any:
    return compile_model(Path(__file__).parent / "assets" / file)


def model_field(file: str, **options: Any) -> Any:
    """Return a dataclass field whose default is the model of an asset file."""
    return dataclasses.field(default_factory=lambda: load(_compile_asset(file), **options))


def sum_squares(a: Array) -> Array:
    """Return the sum of squares."""
    return jnp.sum(a * a)


def distance(a: Array, b: Array) -> Array:
    """Return the distance of two points; its derivative is zero if they coincide."""
    far = sum_squares(a - b)
    apart = far > 0
    return jnp.where(apart, jnp.sqrt(jnp.where(apart, far, 1)), 0)


def healthy_bonus(healthy: Array, bonus: Array | float) -> Array:
    """Return the bonus if healthy, else zero."""
    return jnp.where(healthy, bonus, jnp.zeros_like(bonus))
