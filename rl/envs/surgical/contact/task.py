"""What the tasks share in which friction alone holds an object between the blades of the tool.

Actions are those of the kinematic tasks of `pick_place`: steps of the tip along x, y and z, a turn
about the vertical, and the jaw. They move the targets of the servos, evenly over the steps of the
simulation in a step of the task, 0.04 s; where a blade meets something it stays behind its target.
What is held, slips or is pushed away is what `jaxgpu.physics.rigid` says: there is no rule of
grasping. `info["held"]` tells whether both blades press on the object.

The tasks are SurRoL's (Xu et al. 2021, arXiv:2108.13035), whose jaw holds by a rule. `shaping` pays
for what is left, L = d + 10 mm |sin a| + 20 mm (2 - e s - tanh(F / 0.05 N)) + w: the way d to where
the object is taken, the angle a across it, e = exp(-(d / 3 mm)^2) where the jaw has shut by the
part s, the force F of the blade that presses less, and the object's way w to its goal.
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
from jaxgpu.physics.rigid.models.source import compiled
from jaxgpu.render import Capsules
from jaxgpu.render.capsules import BLUE, GREEN, ORANGE, STEEL

from ....environment import Step, whole_actions
from ....spaces import Box, real
from ..arm_task import distance
from ..pick_place import FLOOR, HALF, HEIGHT, workspace
from .drawing import geom_rods
from .tool import JOINTS, OPEN, PIN, SHUT

SHAFT = 0.2, 0.004  # m, its length and radius in pictures
SCALE = 20.0  # of observed lengths, 1/m
WAY, OFF, SINE, COSINE, JAW, GRIP = slice(3, 6), slice(6, 9), 20, 19, 21, 22  # of the observation
ABOVE, FIRM = 0.02, 0.2  # of the script: m above the object; tanh of N of each blade, held
HELD = 0.05  # N of each blade at which an object counts as held
LEAD = 1.5  # greatest steps of the tip that its target is ahead of it
NEAR = 0.003  # m from where it is taken, at which to shut the jaw is progress
ASKEW, LOOSE = 0.01, 0.04  # m of way that it counts to be across, and to be not held


@pytree
class State:
    """The tool, the object, and where the servos are told to be."""

    body: forward.State  # of the model: joints of the tool, then the object's free joint
    target: Array  # [5] of the servos: x, y, z m, yaw rad, and each blade rad
    goal: Array  # [3] m
    grip: Array  # [] N, of the blade that presses less on the object
    t: Array  # [] steps since the start


@pytree
class ContactTask(ABC):
    """0 a step in which the object is where it should be, -1 else; `shaping` pays for progress."""

    model: Model = dataclasses.field()  # masses, sizes, friction and gains are leaves
    max_shift: Array | float = number(
        default=0.01, above=0, unit="m"
    )  # [] greatest step of the tip's target along each axis
    max_turn: Array | float = number(
        default=np.pi / 6, above=0, most=np.pi, unit="rad"
    )  # [] greatest turn a step
    max_squeeze: Array | float = number(
        default=0.1, above=0, most=OPEN - SHUT, unit="rad"
    )  # [] greatest step of the blades' target
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] of success
    shaping: Array | float = number(default=0.0, least=0)  # [] a m of the way that is left
    substeps: int = size(default=10, least=1)  # steps of the model in one of the task
    max_steps: Array | int = number(default=100, least=1, whole=True, unit="steps")  # [] steps

    #: lengths in 5 cm, the way to the object in 5 mm, too; turns as sines of their double
    observation_space = Box(-np.inf, np.inf, (26,))
    #: steps of the tip, a turn, and the width to open the jaw to: -1 shut, 1 open
    action_space = Box(-1.0, 1.0, (5,))
    differentiable = False  #: through contact it is, but success has no slope

    @whole_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the targets, and the tool after them.

        Raises:
            ValueError: an action of another shape than [5], or one that is not finite.
        """
        del key
        dtype = state.target.dtype
        low, high = workspace(dtype)
        action = jnp.clip(action.astype(dtype), -1, 1)
        shift, turn, jaw = state.target[:3], state.target[3], state.target[4]
        tip, reach = self.tip(state), LEAD * self.max_shift
        shift = jnp.clip(shift + self.max_shift * action[:3], tip - reach, tip + reach)
        shift = jnp.clip(shift, low, high)
        turn = turn + self.max_turn * action[3]
        told = SHUT + (OPEN - SHUT) * (action[4] + 1) / 2
        jaw = jaw + jnp.clip(told - jaw, -self.max_squeeze, self.max_squeeze)
        target = jnp.concatenate([shift, jnp.stack([turn, jaw])])

        def go(known: tuple[forward.State, Array], part: Array) -> tuple[tuple, None]:
            told = state.target + part * (target - state.target)
            ctrl = jnp.append(told, told[4])
            return integrators.seen(self.model, known[0], ctrl, none, self._grip), None

        none = jnp.zeros_like(state.body.qvel)
        parts = jnp.arange(1, self.substeps + 1, dtype=dtype) / self.substeps
        (body, grip), _ = lax.scan(go, (state.body, state.grip), parts)
        new = replace(state, body=body, target=target, grip=grip, t=state.t + 1)
        success = self.is_success(new)
        gain = self.shaping * (self._left(state) - self._left(new))
        truncated = new.t >= self.max_steps
        away = distance(self.position(new), new.goal)
        info = {"success": success, "distance": away, "held": grip > HELD}
        reward = jnp.where(success, 0.0, -1.0).astype(dtype) + gain
        return Step(new, self.observe(new), reward, jnp.zeros_like(truncated), truncated, info)

    @abstractmethod
    def grasp(self) -> tuple[tuple[float, float, float], float]:
        """Where the object is to be taken, in its own axes, m, and the jaw's yaw there, rad."""

    @abstractmethod
    def is_success(self, state: State) -> Array:
        """Whether the object is where it should be."""

    def way(self, state: State) -> Array:
        """What is left of the object's way to the goal, m."""
        return distance(self.position(state), state.goal)

    def position(self, state: State) -> Array:
        """The object's middle [3], m."""
        return state.body.qpos[JOINTS : JOINTS + 3]

    def tip(self, state: State) -> Array:
        """Where the blades' ends meet [3], m."""
        return state.body.qpos[:3]

    def observe(self, state: State) -> Array:
        """Tip, ways to the object and to the goal, turns, the jaw, grip, the object's axis."""
        tip, position = self.tip(state), self.position(state)
        where, across, axis = self._taken(state)
        yaw = state.body.qpos[3]
        fine = jnp.tanh(10 * SCALE * (where - tip))
        ways = [tip - _centre(tip.dtype), where - tip, state.goal - position]
        lag = 100 * (state.target[:3] - tip)
        turns = [f(2 * a) for a in (yaw, across, across - yaw) for f in (jnp.cos, jnp.sin)]
        jaw = [state.body.qpos[4] + state.body.qpos[5], jnp.tanh(state.grip)]
        return jnp.concatenate(
            [*(SCALE * x for x in ways), fine, lag, jnp.stack([*turns, *jaw]), axis]
        )

    def script(self, observation: Array) -> Array:
        """What a script does: a teacher for `rl.DAgger`, as SurRoL's oracle is.

        Above where the object is taken, across it, down, the jaw shut, and with it to the goal.

        Args:
            observation: [26], as `step` and `reset` give it.

        Returns:
            The action [5], within -1 and 1.

        Raises:
            ValueError: an observation of another shape, or one that is not finite.
        """
        observation = jnp.asarray(numbers("script: observation", observation, (26,)))
        way, off, jaw, grip = (observation[at] for at in (WAY, OFF, JAW, GRIP))
        way, off = way / SCALE, off / SCALE
        askew = jnp.arctan2(observation[SINE], observation[COSINE]) / 2
        aside = jnp.sqrt(way[0] ** 2 + way[1] ** 2)
        far = jnp.sqrt(aside**2 + way[2] ** 2)
        firm = grip > FIRM
        shut = firm | (far < jnp.where(jaw < 1.9 * OPEN, 0.004, 0.0015))
        down = (aside < 0.002) & (jnp.abs(askew) < 0.1)
        to_it = jnp.where(shut, 0.0, way.at[2].add(jnp.where(down, 0.0, ABOVE)))
        height = (observation[2] + observation[5]) / SCALE + HEIGHT / 2
        shift = jnp.where(firm, self.carry(off, height), to_it) / self.max_shift
        turn = jnp.where(firm, 0.0, askew) / self.max_turn
        jaw_to = jnp.where(shut, -1.0, 1.0)
        return jnp.clip(jnp.concatenate([shift, jnp.stack([turn, jaw_to])]), -1, 1)

    def carry(self, off: Array, height: Array) -> Array:
        """The script's way on of what is held, from its way to the goal and its height, m."""
        del height
        return off

    def scene(self, state: State) -> Capsules:
        """Tool in steel, the object in blue, its goal orange, and green where it is reached."""
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
        """The first state with an object there: tool in the corner, its jaw open."""
        corner = jnp.asarray([-HALF, HALF, FLOOR + HEIGHT, 0.0], real())
        turn = jnp.stack([jnp.cos(yaw / 2), 0 * yaw, 0 * yaw, jnp.sin(yaw / 2)])
        blades = jnp.full(2, OPEN, real())
        body = self.model.init(jnp.concatenate([corner, blades, position, turn]))
        state = State(
            body=body,
            target=jnp.append(corner, blades[0]),
            goal=goal,
            grip=jnp.zeros((), real()),
            t=jnp.int32(0),
        )
        return state, self.observe(state)

    def _taken(self, state: State) -> tuple[Array, Array, Array]:
        """Where it is to be taken [3], the jaw's yaw there, and the object's third axis [3]."""
        place, yaw = self.grasp()
        quat = state.body.qpos[JOINTS + 3 : JOINTS + 7]
        turn = jnp.stack([jnp.stack(row) for row in rotations.matrix(quat)])
        where = self.position(state) + jnp.sum(turn * jnp.asarray([place], turn.dtype), 1)
        return where, jnp.arctan2(turn[1, 0], turn[0, 0]) + yaw, turn[:, 2]

    def _left(self, state: State) -> Array:
        """What is left, as a way, m: to the object, across it, to shut, to press, to the goal."""
        where, across, _ = self._taken(state)
        to_it = distance(self.tip(state), where)
        askew = ASKEW * jnp.abs(jnp.sin(across - state.body.qpos[3]))
        jaw = (state.body.qpos[4] + state.body.qpos[5]) / (2 * OPEN)
        shut = jnp.exp(-((to_it / NEAR) ** 2)) * jnp.clip(1 - jaw, 0, 1)
        held = 0.5 * shut + 0.5 * jnp.tanh(state.grip / HELD)
        return to_it + askew + LOOSE * (1 - held) + self.way(state)

    def _grip(self, d: forward.Dynamics) -> Array:
        """The smaller of both blades' forces on the object, N."""
        pressed = jnp.zeros(2, d.qacc.dtype)
        blades = np.array([self.model.index("geom", name) for name in ("right", "left")])
        for c, push in zip(d.contacts, d.pushes):
            of = jnp.any(c.geoms[:, None] == blades[None, :, None], -1)  # [C, 2]
            pressed += jnp.sum(jnp.where(of, push[:, :1], 0), 0)
        return jnp.min(pressed)


def model_of(text: Callable[[], str], contacts: int) -> Any:
    """A field that is the model of a text of MuJoCo's format, with so many contacts at a time."""
    read = lru_cache(maxsize=1)(lambda: compiled(text()))
    return dataclasses.field(default_factory=lambda: load(read(), contacts=contacts))


def _centre(dtype: Any) -> Array:
    return jnp.asarray([0.0, 0.0, FLOOR + HEIGHT / 2], dtype)
