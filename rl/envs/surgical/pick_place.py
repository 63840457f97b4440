"""Base class of the kinematic tasks in which the PSM picks up an object and moves it.

After SurRoL (Xu et al. 2021, arXiv:2108.13035): the tool points down, and actions move its tip,
rotate it about the vertical and open or close the jaw, which carries the object that it holds.
SurRoL moves objects by PyBullet. Here a jaw holds the object if it closes within `grasp_distance`
of its grasp position, and within `grasp_angle` of the direction across it; a released object falls
straight down. The origin is the arm's remote center; `joints` are those of the arm.
"""

from abc import ABC, abstractmethod
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Capsules

from ...environment import Step, check_actions
from ...spaces import Box, float_dtype
from .arm_task import distance
from .arms import PSM
from .drawing import draw_arm, draw_grasp
from .kinematics import inverse_kinematics

FLOOR = -0.19  # m, of the tray or the board, below the remote center
HALF, HEIGHT = 0.05, 0.06  # m, half width of the workspace, and its height above the floor
MARGIN = 0.02  # m, by which the tip may leave the workspace


@pytree
class State:
    """State of the tool and one object."""

    tip: Array  # [3] m
    yaw: Array  # [] of the jaw, rad
    closed: Array  # [] bool
    held: Array  # [] bool
    position: Array  # [3] of the object, m
    object_yaw: Array  # [] of the object about the vertical, rad
    goal: Array  # [3] m
    t: Array  # [] steps since the start


@pytree
class PickPlace(ABC):
    """Base class: reward 0 per step with the object at its goal, else -1, plus `shaping`."""

    max_shift: Array | float = number(
        default=0.01, above=0, unit="m"
    )  # [] maximum step of the tip along each axis, m
    max_turn: Array | float = number(
        default=np.pi / 6, above=0, most=np.pi, unit="rad"
    )  # [] maximum rotation per step, rad
    grasp_distance: Array | float = number(
        default=2e-3, above=0, unit="m"
    )  # [] maximum distance of the jaw from the grasp position, m
    grasp_angle: Array | float = number(
        default=0.35, above=0, most=np.pi / 2, unit="rad"
    )  # [] maximum angle of the jaw from across, rad
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] success threshold, m
    shaping: Array | float = number(
        default=0.0, least=0
    )  # [] reward per m of tip to object, until held, and of object to goal
    max_steps: Array | int = number(default=50, least=1, whole=True, unit="steps")  # [] steps

    #: lengths in 5 cm; angles as cosine and sine of twice the angle
    observation_space = Box(-np.inf, np.inf, (17,))
    action_space = Box(-1.0, 1.0, (5,))  #: tip step, rotation, and the jaw: closed below 0
    differentiable = False  #: grasping and success have no gradient

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the tool and the held object, close or open the jaw, and let objects fall.

        Raises:
            ValueError: an action of a shape other than [5], or not finite.
        """
        del key
        action = jnp.clip(action, -1, 1)
        low, high = workspace(state.tip.dtype)
        tip = jnp.clip(state.tip + self.max_shift * action[:3], low, high)
        yaw = state.yaw + self.max_turn * action[3]
        closed = action[4] < 0
        tip, yaw = self.limit_pose(state, tip, yaw)
        carried_to = held_position(state, tip, yaw)
        position = jnp.where(state.held, carried_to, state.position)
        object_yaw = state.object_yaw + jnp.where(state.held, yaw - state.yaw, 0.0)
        taken = ~state.closed & self._can_grasp(tip, yaw, position, object_yaw)
        held = closed & (state.held | taken)
        position = jnp.where(held, position, self.rest_position(position))
        new = replace(
            state,
            tip=tip,
            yaw=yaw,
            closed=closed,
            held=held,
            position=position,
            object_yaw=object_yaw,
            t=state.t + 1,
        )
        success = self.is_success(new)
        gain = self.shaping * (self._remaining_distance(state) - self._remaining_distance(new))
        truncated = new.t >= self.max_steps
        info = {"success": success, "distance": distance(position, state.goal), "held": held}
        reward = jnp.where(success, 0.0, -1.0).astype(position.dtype) + gain
        return Step(new, self.observe(new), reward, jnp.zeros_like(truncated), truncated, info)

    def limit_pose(self, state: State, tip: Array, yaw: Array) -> tuple[Array, Array]:
        """Return the pose that the tool reaches on the way to `tip` and `yaw`, if blocked."""
        del state
        return tip, yaw

    @abstractmethod
    def rest_position(self, position: Array) -> Array:
        """Return the resting position of an object released at `position`."""

    @abstractmethod
    def grasp_pose(self, position: Array, yaw: Array) -> tuple[Array, Array]:
        """Return the grasp position of an object, [3] m, and the jaw's yaw across it, rad."""

    @abstractmethod
    def is_success(self, state: State) -> Array:
        """Return whether the object is at its goal."""

    @abstractmethod
    def solids(self, state: State) -> tuple[Array, Array, Array, Array]:
        """Return capsules to render: starts, ends [K, 3], radii [K], m; mask [K] of the object."""

    def scene(self, state: State) -> Capsules:
        """Return the arm, its jaw and the objects as capsules."""
        drawn = draw_arm(PSM, self.joints(state), state.goal, self.is_success(state), 0.004)
        solids = self.solids(state)
        return draw_grasp(drawn, state.tip, state.yaw, state.closed, solids, FLOOR)

    def observe(self, state: State) -> Array:
        """Return tip, vectors to object and from there to goal, angles, flags closed and held."""
        where, across = self.grasp_pose(state.position, state.object_yaw)
        ways = [20 * (state.tip - _workspace_center(state.tip.dtype)), 20 * (where - state.tip)]
        ways.append(20 * (state.goal - state.position))
        turns = [
            f(2 * a) for a in (state.yaw, across, across - state.yaw) for f in (jnp.cos, jnp.sin)
        ]
        flags = [x.astype(state.tip.dtype) for x in (state.closed, state.held)]
        return jnp.concatenate([*ways, jnp.stack([*turns, *flags])])

    def joints(self, state: State) -> Array:
        """Return the joints of the arm, [6]."""
        return inverse_kinematics(state.tip, downward_frame(state.yaw))

    def first_state(self, position: Array, object_yaw: Array, goal: Array) -> tuple[State, Array]:
        """Return the initial state for an object pose: tool in the corner, jaw open."""
        state = State(
            tip=jnp.asarray([-HALF, HALF, FLOOR + HEIGHT], float_dtype()),
            yaw=jnp.zeros((), float_dtype()),
            closed=jnp.bool_(False),
            held=jnp.bool_(False),
            position=position,
            object_yaw=object_yaw,
            goal=goal,
            t=jnp.int32(0),
        )
        return state, self.observe(state)

    def _can_grasp(self, tip: Array, yaw: Array, position: Array, object_yaw: Array) -> Array:
        where, across = self.grasp_pose(position, object_yaw)
        straight = jnp.abs(jnp.sin(across - yaw)) < jnp.sin(self.grasp_angle)  # or opposite
        return straight & (distance(tip, where) < self.grasp_distance)

    def _remaining_distance(self, state: State) -> Array:
        """Return the remaining distance, m: tip to object, unless held, and object to goal."""
        where, _ = self.grasp_pose(state.position, state.object_yaw)
        to_it = jnp.where(state.held, 0.0, distance(state.tip, where))
        return to_it + distance(state.position, state.goal)


def downward_frame(yaw: Array) -> Array:
    """Return the frame [3, 3] of a jaw that points down and opens along `yaw`, rad."""
    c, s, zero, one = jnp.cos(yaw), jnp.sin(yaw), jnp.zeros_like(yaw), jnp.ones_like(yaw)
    rows = ((c, zero, -s), (s, zero, c), (zero, -one, zero))
    return jnp.stack([jnp.stack(row) for row in rows])


def rotate_z(x: Array, angle: Array) -> Array:
    """Rotate a vector [3] about the vertical."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]])


def held_position(state: State, tip: Array, yaw: Array) -> Array:
    """Return the object's position, [3] m, if held while the tool moves to `tip` and `yaw`."""
    return tip + rotate_z(state.position - state.tip, yaw - state.yaw)


def workspace(dtype: jnp.dtype) -> tuple[Array, Array]:
    """Return the lower and upper corner [3] of the tip's workspace, m."""
    low = np.array([-HALF - MARGIN, -HALF - MARGIN, FLOOR])
    high = np.array([HALF + MARGIN, HALF + MARGIN, FLOOR + HEIGHT + MARGIN])
    return jnp.asarray(low, dtype), jnp.asarray(high, dtype)


def _workspace_center(dtype: jnp.dtype) -> Array:
    return jnp.asarray([0.0, 0.0, FLOOR + HEIGHT / 2], dtype)
