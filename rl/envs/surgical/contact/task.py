"""Base class of the tasks in which only friction holds an object between the tool's blades.

Actions are those of the kinematic tasks of `pick_place`: steps of the tip along x, y and z, a
rotation about the vertical, and the jaw. They move the targets of the servos, uniformly over the
simulation steps of a task step of 0.04 s; a blade in contact lags behind its target. Whether an
object is held, slips or is pushed away follows from `jaxgpu.physics.rigid`: there is no grasping
rule. `info["held"]` is True if both blades press on the object.

The tasks are SurRoL's (Xu et al. 2021, arXiv:2108.13035), where a rule holds the object. `shaping`
rewards decreases of L = d + 10 mm |sin a| + 20 mm (2 - e s - tanh(F / 0.05 N)) + w: the distance d
to the grasp position, the angle a from across it, e = exp(-(d / 3 mm)^2), the closed fraction s of
the jaw, the force F of the blade that presses less, and the object's remaining path w to its goal.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import rotations
from jaxgpu.inputs.fields import number, pytree, size
from jaxgpu.inputs.ranges import numbers
from jaxgpu.physics.rigid import forward, integrators
from jaxgpu.physics.rigid.model import Model, load
from jaxgpu.physics.rigid.models.source import compile_model
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

from ....environment import Step, check_actions
from ....spaces import Box, float_dtype
from ..arm_task import distance
from ..pick_place import FLOOR, HALF, HEIGHT, workspace
from .drawing import geom_rods
from .tool import JOINTS, OPEN, PIN, SHUT

SHAFT = 0.2, 0.004  # m, length and radius of the rendered shaft
SCALE = 20.0  # 1/m, of observed lengths
WAY, OFF, SINE, COSINE, JAW, GRIP = slice(3, 6), slice(6, 9), 20, 19, 21, 22  # in observations
HOVER_HEIGHT, FIRM_GRIP = (
    0.02,
    0.2,
)  # of the script: m above the object; tanh of the force in N that holds
MIN_GRIP = 0.05  # N per blade, at which an object counts as held
MAX_LEAD = 1.5  # maximum lead of the target over the tip, in maximum steps
CLOSE_SCALE = 0.003  # m from the grasp position, scale within which closing counts
ALIGN_LENGTH, GRASP_LENGTH = (
    0.01,
    0.04,
)  # m, path lengths equivalent to misalignment and to not holding


@pytree
class State:
    """State of tool and object, and the targets of the servos."""

    body: forward.State  # state of the model: joints of the tool, then the object's free joint
    target: Array  # [5] of the servos: x, y, z m, yaw rad, and each blade rad
    goal: Array  # [3] m
    grip: Array  # [] N, force of the blade that presses less on the object
    t: Array  # [] steps since the start


@pytree
class ContactTask(ABC):
    """Base class: reward 0 per step with the object at its goal, else -1, plus `shaping`."""

    model: Model = dataclasses.field()  # masses, sizes, friction and gains are leaves
    max_shift: Array | float = number(
        default=0.01, above=0, unit="m"
    )  # [] maximum step of the tip's target along each axis
    max_turn: Array | float = number(
        default=np.pi / 6, above=0, most=np.pi, unit="rad"
    )  # [] maximum rotation per step
    max_squeeze: Array | float = number(
        default=0.1, above=0, most=OPEN - SHUT, unit="rad"
    )  # [] maximum step of the blades' target
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] success threshold
    shaping: Array | float = number(default=0.0, least=0)  # [] reward per m of the remaining path
    substeps: int = size(default=10, least=1)  # steps of the model per step of the task
    max_steps: Array | int = number(default=100, least=1, whole=True, unit="steps")  # [] steps

    #: lengths in 5 cm, vector to the object also in 5 mm; angles as sines of twice the angle
    observation_space = Box(-np.inf, np.inf, (26,))
    #: steps of the tip, a rotation, and the opening of the jaw: -1 shut, 1 open
    action_space = Box(-1.0, 1.0, (5,))
    differentiable = False  #: contact is, but success has no gradient

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the targets, and the tool after them.

        Raises:
            ValueError: an action of a shape other than [5], or not finite.
        """
        del key
        dtype = state.target.dtype
        low, high = workspace(dtype)
        action = jnp.clip(action.astype(dtype), -1, 1)
        shift, turn, jaw = state.target[:3], state.target[3], state.target[4]
        tip, reach = self.tip(state), MAX_LEAD * self.max_shift
        shift = jnp.clip(shift + self.max_shift * action[:3], tip - reach, tip + reach)
        shift = jnp.clip(shift, low, high)
        turn = turn + self.max_turn * action[3]
        told = SHUT + (OPEN - SHUT) * (action[4] + 1) / 2
        jaw = jaw + jnp.clip(told - jaw, -self.max_squeeze, self.max_squeeze)
        target = jnp.concatenate([shift, jnp.stack([turn, jaw])])

        def substep(known: tuple[forward.State, Array], part: Array) -> tuple[tuple, None]:
            told = state.target + part * (target - state.target)
            ctrl = jnp.append(told, told[4])
            return integrators.step_and_look(
                self.model, known[0], ctrl, none, self._grip_force
            ), None

        none = jnp.zeros_like(state.body.qvel)
        parts = jnp.arange(1, self.substeps + 1, dtype=dtype) / self.substeps
        (body, grip), _ = lax.scan(substep, (state.body, state.grip), parts)
        new = replace(state, body=body, target=target, grip=grip, t=state.t + 1)
        success = self.is_success(new)
        gain = self.shaping * (self._remaining_path(state) - self._remaining_path(new))
        truncated = new.t >= self.max_steps
        away = distance(self.position(new), new.goal)
        info = {"success": success, "distance": away, "held": grip > MIN_GRIP}
        reward = jnp.where(success, 0.0, -1.0).astype(dtype) + gain
        return Step(new, self.observe(new), reward, jnp.zeros_like(truncated), truncated, info)

    @abstractmethod
    def grasp(self) -> tuple[tuple[float, float, float], float]:
        """Return the grasp position in the object's frame, m, and the jaw's yaw there, rad."""

    @abstractmethod
    def is_success(self, state: State) -> Array:
        """Return whether the object is at its goal."""

    def path_length(self, state: State) -> Array:
        """Return the remaining path length of the object to the goal, m."""
        return distance(self.position(state), state.goal)

    def position(self, state: State) -> Array:
        """Return the object's center [3], m."""
        return state.body.qpos[JOINTS : JOINTS + 3]

    def tip(self, state: State) -> Array:
        """Return the point between the blades' ends [3], m."""
        return state.body.qpos[:3]

    def observe(self, state: State) -> Array:
        """Return tip, vectors to object and goal, angles, jaw, grip force, and object axis."""
        tip, position = self.tip(state), self.position(state)
        where, across, axis = self._grasp_pose(state)
        yaw = state.body.qpos[3]
        fine = jnp.tanh(10 * SCALE * (where - tip))
        ways = [tip - _workspace_center(tip.dtype), where - tip, state.goal - position]
        lag = 100 * (state.target[:3] - tip)
        turns = [f(2 * a) for a in (yaw, across, across - yaw) for f in (jnp.cos, jnp.sin)]
        jaw = [state.body.qpos[4] + state.body.qpos[5], jnp.tanh(state.grip)]
        return jnp.concatenate(
            [*(SCALE * x for x in ways), fine, lag, jnp.stack([*turns, *jaw]), axis]
        )

    def script(self, observation: Array) -> Array:
        """Return a scripted action, a teacher for `rl.DAgger`, as SurRoL's oracle is.

        It moves above the grasp position, aligns, descends, closes the jaw, and moves to the goal.

        Args:
            observation: [26], as returned by `step` and `reset`.

        Returns:
            The action [5], within -1 and 1.

        Raises:
            ValueError: an observation of the wrong shape, or not finite.
        """
        observation = jnp.asarray(numbers("script: observation", observation, (26,)))
        way, off, jaw, grip = (observation[at] for at in (WAY, OFF, JAW, GRIP))
        way, off = way / SCALE, off / SCALE
        askew = jnp.arctan2(observation[SINE], observation[COSINE]) / 2
        aside = jnp.sqrt(way[0] ** 2 + way[1] ** 2)
        far = jnp.sqrt(aside**2 + way[2] ** 2)
        firm = grip > FIRM_GRIP
        shut = firm | (far < jnp.where(jaw < 1.9 * OPEN, 0.004, 0.0015))
        down = (aside < 0.002) & (jnp.abs(askew) < 0.1)
        to_it = jnp.where(shut, 0.0, way.at[2].add(jnp.where(down, 0.0, HOVER_HEIGHT)))
        height = (observation[2] + observation[5]) / SCALE + HEIGHT / 2
        shift = jnp.where(firm, self.carry(off, height), to_it) / self.max_shift
        turn = jnp.where(firm, 0.0, askew) / self.max_turn
        jaw_to = jnp.where(shut, -1.0, 1.0)
        return jnp.clip(jnp.concatenate([shift, jnp.stack([turn, jaw_to])]), -1, 1)

    def carry(self, off: Array, height: Array) -> Array:
        """Return the scripted displacement of a held object, [3] m, from its offset to the goal."""
        del height
        return off

    def scene(self, state: State) -> Capsules:
        """Return the tool in steel, the object in blue, the goal in orange, green once reached."""
        start, end, radius, body = geom_rods(self.model, state.body)
        tip = self.tip(state)
        pin, shaft = (tip.at[2].add(x) for x in (PIN, PIN + SHAFT[0]))
        where = jnp.where(self.is_success(state), jnp.array(GREEN), jnp.array(ORANGE))
        own = body == self.model.index("body", "object")
        ink = jnp.where(own[:, None], jnp.array([BLUE]), jnp.array([STEEL]))
        more = jnp.asarray([SHAFT[1], 0.0015], tip.dtype)
        return Capsules(
            start=jnp.concatenate([start, jnp.stack([pin, state.goal])]),
            end=jnp.concatenate([end, jnp.stack([shaft, state.goal])]),
            radius=jnp.concatenate([radius, more]),
            colour=jnp.concatenate([ink, jnp.array([STEEL]), where[None]]).astype(tip.dtype),
            floor=jnp.asarray(FLOOR, tip.dtype),
            tile=jnp.asarray(0.02, tip.dtype),
        )

    def first_state(self, position: Array, yaw: Array, goal: Array) -> tuple[State, Array]:
        """Return the initial state for an object pose: tool in the corner, jaw open."""
        corner = jnp.asarray([-HALF, HALF, FLOOR + HEIGHT, 0.0], float_dtype())
        turn = jnp.stack([jnp.cos(yaw / 2), 0 * yaw, 0 * yaw, jnp.sin(yaw / 2)])
        blades = jnp.full(2, OPEN, float_dtype())
        body = self.model.init(jnp.concatenate([corner, blades, position, turn]))
        state = State(
            body=body,
            target=jnp.append(corner, blades[0]),
            goal=goal,
            grip=jnp.zeros((), float_dtype()),
            t=jnp.int32(0),
        )
        return state, self.observe(state)

    def _grasp_pose(self, state: State) -> tuple[Array, Array, Array]:
        """Return the grasp position [3], the jaw's yaw there, and the object's third axis [3]."""
        place, yaw = self.grasp()
        quat = state.body.qpos[JOINTS + 3 : JOINTS + 7]
        turn = jnp.stack([jnp.stack(row) for row in rotations.matrix(quat)])
        where = self.position(state) + jnp.sum(turn * jnp.asarray([place], turn.dtype), 1)
        return where, jnp.arctan2(turn[1, 0], turn[0, 0]) + yaw, turn[:, 2]

    def _remaining_path(self, state: State) -> Array:
        """Return L, the remaining path length, m: approach, align, close, press, and transfer."""
        where, across, _ = self._grasp_pose(state)
        to_it = distance(self.tip(state), where)
        askew = ALIGN_LENGTH * jnp.abs(jnp.sin(across - state.body.qpos[3]))
        jaw = (state.body.qpos[4] + state.body.qpos[5]) / (2 * OPEN)
        shut = jnp.exp(-((to_it / CLOSE_SCALE) ** 2)) * jnp.clip(1 - jaw, 0, 1)
        held = 0.5 * shut + 0.5 * jnp.tanh(state.grip / MIN_GRIP)
        return to_it + askew + GRASP_LENGTH * (1 - held) + self.path_length(state)

    def _grip_force(self, d: forward.Dynamics) -> Array:
        """Return the smaller of the two blades' normal forces on the object, N."""
        pressed = jnp.zeros(2, d.qacc.dtype)
        blades = np.array([self.model.index("geom", name) for name in ("right", "left")])
        for c, push in zip(d.contacts, d.pushes):
            of = jnp.any(c.geoms[:, None] == blades[None, :, None], -1)  # [C, 2]
            pressed += jnp.sum(jnp.where(of, push[:, :1], 0), 0)
        return jnp.min(pressed)


def model_field(text: Callable[[], str], contacts: int) -> Any:
    """Return a field whose default is the model of an MJCF text, with a contact capacity."""
    read = lru_cache(maxsize=1)(lambda: compile_model(text()))
    return dataclasses.field(default_factory=lambda: load(read(), contacts=contacts))


def _workspace_center(dtype: Any) -> Array:
    return jnp.asarray([0.0, 0.0, FLOOR + HEIGHT / 2], dtype)
