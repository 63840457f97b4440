"""Tasks in which the PSM takes something and brings it elsewhere: what they share, kinematic.

After SurRoL (Xu et al. 2021, arXiv:2108.13035): the tool points down, actions move its tip in
space, turn it about the vertical and open or close the jaw, and what the jaw closes on goes with
it. SurRoL moves objects by PyBullet; here a jaw that closes within `grip` of the object's handle,
and within `skew` of the direction across it, holds it, and what is let go falls straight down.
The origin is the arm's remote centre; `inverse.joints` gives the joints of the arm.
"""

from abc import ABC, abstractmethod

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.pytree import number, pytree

from ...environment import Step
from ...spaces import Box, real
from . import inverse
from .armed import apart

FLOOR = -0.19  # m, of the tray or the board, below the remote centre
HALF, HEIGHT = 0.05, 0.06  # m, of the workspace: to either side, and above the floor
MARGIN = 0.02  # m that the tip may leave it by


@pytree
class State:
    """The tool, and one object."""

    tip: Array  # [3] m
    yaw: Array  # [] of the jaw, rad
    closed: Array  # [] bool
    held: Array  # [] bool
    place: Array  # [3] of the object, m
    turn: Array  # [] of the object about the vertical, rad
    goal: Array  # [3] m
    t: Array  # [] steps since the start


@pytree
class Handling(ABC):
    """0 a step in which the object is where it should be, -1 else; `shaping` pays for progress."""

    reach: Array | float = number(
        default=0.01, above=0, unit="m"
    )  # [] greatest step of the tip along each axis, m
    twist: Array | float = number(
        default=np.pi / 6, above=0, unit="rad"
    )  # [] greatest turn a step, rad
    grip: Array | float = number(
        default=2e-3, above=0, unit="m"
    )  # [] how near the tip must close to the handle, m
    skew: Array | float = number(default=0.35, above=0, unit="rad")  # [] how far askew, rad
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] of success, m
    shaping: Array | float = number(
        default=0.0, least=0
    )  # [] a m of tip to handle, till held, and of object to goal
    horizon: Array | int = number(default=50, least=1, whole=True, unit="steps")  # [] steps

    @property
    def observation_space(self) -> Box:
        """Lengths in 5 cm; the turns by the cosine and sine of their double."""
        return Box(-np.inf, np.inf, (17,))

    @property
    def action_space(self) -> Box:
        """Steps of the tip, a turn, and the jaw: closed below 0."""
        return Box(-1.0, 1.0, (5,))

    @property
    def differentiable(self) -> bool:
        """Taking and success have no slope."""
        return False

    def step(self, state: State, action: Array, key: Array) -> Step:
        """Move the tool and what it holds, close or open the jaw, let fall."""
        del key
        action = jnp.clip(action, -1, 1)
        low, high = _box(state.tip.dtype)
        tip = jnp.clip(state.tip + self.reach * action[:3], low, high)
        yaw = state.yaw + self.twist * action[3]
        closed = action[4] < 0
        tip, yaw = self.led(state, tip, yaw)
        moved = carried(state, tip, yaw)
        place = jnp.where(state.held, moved, state.place)
        turn = state.turn + jnp.where(state.held, yaw - state.yaw, 0.0)
        held = closed & (state.held | (~state.closed & self._takes(tip, yaw, place, turn)))
        place = jnp.where(held, place, self.fallen(place))
        new = State(tip, yaw, closed, held, place, turn, state.goal, state.t + 1)
        success = self.there(new)
        gain = self.shaping * (self._left(state) - self._left(new))
        over = new.t >= self.horizon
        info = {"success": success, "distance": apart(place, state.goal), "held": held}
        reward = jnp.where(success, 0.0, -1.0).astype(place.dtype) + gain
        return Step(new, self.observe(new), reward, jnp.zeros_like(over), over, info)

    def led(self, state: State, tip: Array, yaw: Array) -> tuple[Array, Array]:
        """Where the tool gets if it tries to go to `tip` and `yaw`: there, unless it is blocked."""
        del state
        return tip, yaw

    @abstractmethod
    def fallen(self, place: Array) -> Array:
        """Where an object let go at `place` comes to rest."""

    @abstractmethod
    def handle(self, place: Array, turn: Array) -> tuple[Array, Array]:
        """Where an object is to be taken, [3] m, and the jaw's yaw across it there, rad."""

    @abstractmethod
    def there(self, state: State) -> Array:
        """Whether the object is where it should be."""

    @abstractmethod
    def solids(self, state: State) -> tuple[Array, Array, Array, Array]:
        """Capsules for a picture: starts, ends [K, 3], radii [K], m; which are the object, [K]."""

    def observe(self, state: State) -> Array:
        """Tip, jaw, ways to the handle and on to the goal, turns, whether closed and held."""
        where, across = self.handle(state.place, state.turn)
        ways = [20 * (state.tip - _middle(state.tip.dtype)), 20 * (where - state.tip)]
        ways.append(20 * (state.goal - state.place))
        turns = [
            f(2 * a) for a in (state.yaw, across, across - state.yaw) for f in (jnp.cos, jnp.sin)
        ]
        flags = [x.astype(state.tip.dtype) for x in (state.closed, state.held)]
        return jnp.concatenate([*ways, jnp.stack([*turns, *flags])])

    def joints(self, state: State) -> Array:
        """Of the arm, [6]."""
        return inverse.joints(state.tip, downward(state.yaw))

    def begun(self, place: Array, turn: Array, goal: Array) -> tuple[State, Array]:
        """The first state with an object there: tool in the corner, its jaw open."""
        tip = jnp.asarray([-HALF, HALF, FLOOR + HEIGHT], real())
        no = jnp.bool_(False)
        state = State(tip, jnp.zeros((), real()), no, no, place, turn, goal, jnp.int32(0))
        return state, self.observe(state)

    def _takes(self, tip: Array, yaw: Array, place: Array, turn: Array) -> Array:
        where, across = self.handle(place, turn)
        straight = jnp.abs(jnp.sin(across - yaw)) < jnp.sin(self.skew)  # either way round
        return straight & (apart(tip, where) < self.grip)

    def _left(self, state: State) -> Array:
        """What is left to go, m."""
        where, _ = self.handle(state.place, state.turn)
        to_it = jnp.where(state.held, 0.0, apart(state.tip, where))
        return to_it + apart(state.place, state.goal)


def downward(yaw: Array) -> Array:
    """The jaw's frame [3, 3] where the tool points down and the jaw parts along `yaw`, rad."""
    c, s, zero, one = jnp.cos(yaw), jnp.sin(yaw), jnp.zeros_like(yaw), jnp.ones_like(yaw)
    rows = ((c, zero, -s), (s, zero, c), (zero, -one, zero))
    return jnp.stack([jnp.stack(row) for row in rows])


def turned(x: Array, angle: Array) -> Array:
    """A vector [3] turned about the vertical."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]])


def carried(state: State, tip: Array, yaw: Array) -> Array:
    """Where the object gets, [3] m, if held while the tool goes to `tip` and `yaw`."""
    return tip + turned(state.place - state.tip, yaw - state.yaw)


def _box(dtype: jnp.dtype) -> tuple[Array, Array]:
    low = np.array([-HALF - MARGIN, -HALF - MARGIN, FLOOR])
    high = np.array([HALF + MARGIN, HALF + MARGIN, FLOOR + HEIGHT + MARGIN])
    return jnp.asarray(low, dtype), jnp.asarray(high, dtype)


def _middle(dtype: jnp.dtype) -> Array:
    return jnp.asarray([0.0, 0.0, FLOOR + HEIGHT / 2], dtype)
