"""Tasks of a gripper that feels what it holds: what they share.

After TacSL's tasks (Akinola et al. 2024, arXiv:2408.06506), on `jaxgpu.physics.touch.Grasp`: a hand
without an arm holds a part between two pads and is to bring it to its place on or in a fixture.

Actions [6] within -1 ... 1: shift of the hand's target from where the hand is, in `max_shift`, and
its turn about the axes of space, in `max_turn`; 60 a second. With K and D of the impedance an
action of 1 is a velocity of K max_shift / D, 0.12 m/s, and 1.8 rad/s; 0 brakes, and holds no place.

Rewards a step, with d the mean distance of four points on the part's axis, 1/4 and 1/12 m above and
below its tip, from where they should be:

    -0.1 w d + 0.1 / (exp(50 d) + 1e-4 + exp(-50 d)) - 0.001 |a - a'| - penalty |force on the part|

where a' is the action before, and w is 10 where the tip is beside its place and below the top of
the fixture, else 1. One degree of tilt is 2.9 mm of d.

An episode has `max_steps` steps of the policy, then those of the task's ending, in which actions
are not heeded; only the clock ends it. Departures: there is no arm, the hand touches nothing but
the part, weight acts on the part, and the fixture stands on the table.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.geometry.rows import length
from jaxgpu.inputs.fields import number, pytree, size, static
from jaxgpu.physics.touch import GelSight, Grasp, GraspState, gelsight
from jaxgpu.render import Capsules

from ...environment import Step, whole_actions
from ...spaces import Box, real
from . import cameras, observations
from .drawing import draw_grasp
from .script import Script

FINGERTIP = 0.013  # m from the middle between the pads down to the end of the fingers
LEVERS = (-1 / 4, -1 / 12, 1 / 12, 1 / 4)  # m of the points on the part's axis from its tip


@pytree
class State:
    """Hand, part and fixture, what was drawn for the episode, and the last action."""

    grasp: GraspState
    action: Array  # [6] the last
    error: Array  # [3] of the fixture's place as it is observed, m
    factors: Array  # [3] of the impedance, of friction and of the pads' stiffness, drawn
    t: Array  # [] steps since the start


@pytree
class TouchTask(ABC):
    """A part in a gripper, and where it belongs."""

    grasp: Grasp
    max_shift: Array | float = number(default=0.01, above=0, unit="m")  # [] along each axis
    max_turn: Array | float = number(default=0.05, above=0, unit="rad")  # [] about each axis
    tilt: Array | float = number(
        default=np.pi / 10, least=0, most=1, unit="rad"
    )  # [] greatest of the part about the axis of the grip, at the start
    # [] greatest distance of hand and fixture from the middle of the table along x and y
    spread: Array | float = number(default=0.1, least=0, unit="m")
    height: Array | float = number(default=0.15, above=0, unit="m")  # [] of the fingertips, mean
    height_spread: Array | float = number(default=0.05, least=0, unit="m")  # [] either way
    lean: Array | float = number(default=0.1, least=0, most=1, unit="rad")  # [] of the hand
    yaw: Array | float = number(default=1.0, least=0, most=3.15, unit="rad")  # [] of the hand
    place_error: Array | float = number(
        default=0.0, least=0, unit="m"
    )  # [] greatest of the fixture's observed place, along each axis
    gain_spread: Array | float = number(default=0.0, least=0, below=1)  # [] of the impedance
    friction_spread: Array | float = number(default=0.2, least=0, below=1)  # [] of friction
    pad_spread: Array | float = number(default=0.0, least=0, below=1)  # [] of the pads' stiffness
    penalty: Array | float = number(default=0.0, least=0, unit="1/N")  # [] of force on the part
    max_steps: int = size(default=256, least=1)  # steps of the policy
    grid: tuple[int, int] = static(default=(8, 7))  # rows and columns of taxels on a pad
    sensor: GelSight | None = None  # of the pads' pictures, where they are observed
    observation: str = static(default="privileged")  # a word of `observations`

    action_space = Box(-1.0, 1.0, (6,))  #: shift and turn of the hand's target, in the greatest
    differentiable = True  #: piecewise: contact sets in point by point

    @property
    def observation_space(self) -> Any:
        """As `observations` says."""
        return observations.space(self.observation, self.grid, self.sensor)

    @property
    def ending(self) -> int:
        """Steps after those of the policy, in which the task goes on by itself."""
        return 0

    @abstractmethod
    def is_success(self, state: State) -> Array:
        """Whether the part is in its place, and the ending is over."""

    def below(self) -> tuple[Array | float, Array | float]:
        """How far the tip of the part is below the fingertips at the start: least and most, m."""
        full = 2 * self.grasp.part.tip
        return 0.616 * full, 0.8 * full

    def reach(self) -> Array | float:
        """How far the tip is below the middle between the pads, mean, m."""
        low, high = self.below()
        return FINGERTIP + 0.5 * (low + high)

    @property
    def script(self) -> Script:
        """A script that does the task: a teacher of `rl.DAgger` and `rl.KickstartedPPO`.

        From an observation, a vector [56] or a dictionary with `privileged`, to an action [6]; what
        is no observation is refused.

        >>> import jax
        >>> from jaxgpu import rl
        >>> env = rl.make("touch/peg-placement")
        >>> state, seen = env.reset(jax.random.key(0))
        >>> env.script(seen).shape
        (6,)
        """
        hand, fixture = self.grasp, self.grasp.fixture
        return Script(
            speed=hand.stiffness * self.max_shift / hand.damping,
            spin=hand.turn_stiffness * self.max_turn / hand.turn_damping,
            rim=fixture.top - fixture.goal,
        )

    def command(self, state: State, action: Array) -> tuple[Array, Array, Array]:
        """Shift [3] m and turn [3] rad of the hand's target, and opening [] m of the fingers."""
        zero = jnp.zeros((), action.dtype)
        return self.max_shift * action[:3], self.max_turn * action[3:], zero

    def stagger(self, state: State, key: Array) -> State:
        """A first state whose clock is ahead by a random number of steps.

        Copies that begin a training together then do not end their first episodes together.
        """
        return replace(state, t=jax.random.randint(key, (), 0, self.max_steps, state.t.dtype))

    def reset(self, key: Array) -> tuple[State, Any]:
        """Hand and fixture anywhere, the part aslant in the hand, all at rest."""
        drawn = jax.random.uniform(key, (16,), real(), -1, 1)  # at once: a draw has a long program
        place, above, raised, lean, yaw, tilt, held, error, factors = jnp.split(
            drawn, (2, 4, 5, 7, 8, 9, 10, 13)
        )
        fixture = jnp.append(self.spread * place, 0)
        up = self.height + FINGERTIP + self.height_spread * raised
        hand, zero = jnp.append(self.spread * above, up), jnp.zeros(1, real())
        about = lambda *angle: rotations.from_vector(jnp.concatenate(angle))
        turn = rotations.product(about(self.lean * lean, zero), about(zero, zero, self.yaw * yaw))
        aslant = about(zero, self.tilt * tilt, zero)
        quat = jnp.stack(rotations.product(turn, aslant))
        # the tip turns about the middle of what the pads hold of the part
        low, high = self.below()
        tip = jnp.asarray(self.grasp.part.tip, real())
        below = low + 0.5 * (1 + held[0]) * (high - low)
        middle = -FINGERTIP + 0.5 * jnp.minimum(2 * tip - below, 2 * FINGERTIP)
        own = jnp.zeros(3, real()).at[2].set(tip - below - FINGERTIP - middle)
        own = jnp.stack(rotations.turned(jnp.stack(aslant), tuple(own))).at[2].add(middle)
        part = hand + jnp.stack(rotations.turned(jnp.stack(turn), tuple(own)))
        scene = self.grasp.init(hand, part, fixture, quat, jnp.stack(turn), self.opening())
        spread = jnp.stack([self.gain_spread, self.friction_spread, self.pad_spread])
        state = State(
            grasp=scene,
            action=jnp.zeros(6, real()),
            error=self.place_error * error,
            factors=jnp.exp(factors * jnp.log1p(spread.astype(real()))),
            t=jnp.int32(0),
        )
        return state, self.observe(state)

    def opening(self) -> Array:
        """Of the fingers at the start, m."""
        return self.grasp.closed(self.reach() - self.grasp.part.tip).astype(real())

    @whole_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """A control step of the hand; `key` is not used."""
        del key
        action = jnp.clip(action, -1, 1).astype(real())
        shift, turn, opening = self.command(state, action)
        moved = self._drawn(state.factors).step(state.grasp, shift, turn, opening)
        new = replace(state, grasp=moved, action=action, t=state.t + 1)
        far = self.distance(new)
        change = length(action - state.action)
        reward = self._paid(new, far) - 0.001 * change
        over = new.t >= self.max_steps + self.ending
        info = {"success": self.is_success(new), "distance": far}
        return Step(new, self.observe(new), reward, jnp.zeros_like(over), over, info)

    def observe(self, state: State) -> Any:
        """Return what `observation` names: a vector, or a dictionary of arrays."""
        kind, grasp, scene = self.observation, self.grasp, state.grasp
        below = self.reach()
        hand = observations.hand(scene, state.error, state.action, below, grasp.fixture.goal)
        way = self.tip(state) - self.goal(state)
        told = observations.privileged(scene, state.error, way, self.distance(state))
        if kind == "privileged":
            return jnp.concatenate([hand, told])
        parts = {"hand": hand, "privileged": told}
        if kind == "force":
            parts["field"] = observations.field(scene.field, self.grid)
        elif kind == "rgb":
            parts["gels"] = cameras.gels(observations.check_sensor(self.sensor), grasp, scene)
        elif kind == "depth":
            parts["wrist"] = cameras.wrist(grasp, scene)
        return parts

    def scene(self, state: State) -> Capsules:
        """Return the hand, the part and the fixture as capsules."""
        return draw_grasp(self.grasp, state.grasp, self.is_success(state))

    def tip(self, state: State) -> Array:
        """The middle of the part's lower face, [3] m."""
        return state.grasp.part - self.grasp.part.tip * axis(state.grasp.part_quat)

    def goal(self, state: State) -> Array:
        """Where the tip belongs, [3] m."""
        return state.grasp.fixture.at[2].add(self.grasp.fixture.goal)

    def distance(self, state: State) -> Array:
        """d, the mean distance of points on the part's axis from where they should be, [] m."""
        levers = jnp.array(LEVERS, state.action.dtype)[:, None]
        up = jnp.zeros(3, state.action.dtype).at[2].set(1)
        along = axis(state.grasp.part_quat) - up
        return jnp.mean(length((self.tip(state) - self.goal(state))[None] + levers * along[None]))

    def beside(self, state: State) -> Array:
        """How far the tip is from the axis of the fixture, [] m."""
        return length((self.tip(state) - state.grasp.fixture)[:2])

    def _paid(self, state: State, far: Array) -> Array:
        low = self.tip(state)[2] < state.grasp.fixture[2] + self.grasp.fixture.top
        amiss = low & (self.beside(state) > self.width())
        weight = jnp.where(amiss, 10, 1)
        # of the least of both exponentials at once: neither overflows
        close = jnp.exp(-50 * far)
        near = close / (1 + 1e-4 * close + close**2)
        return -0.1 * weight * far + 0.1 * near - self.penalty * length(state.grasp.reaction)

    def width(self) -> Array:
        """How far from the axis a tip below the top is beside its place, [] m."""
        points = jnp.asarray(self.grasp.part.points, real())
        return jnp.max(jnp.abs(points[:, 0]))

    def _drawn(self, factors: Array) -> Grasp:
        """The gripper with the numbers of an episode."""
        gain, slip, soft = factors
        grasp, pad = self.grasp, self.grasp.pad
        return replace(
            grasp,
            stiffness=gain * grasp.stiffness,
            damping=jnp.sqrt(gain) * grasp.damping,
            turn_stiffness=gain * grasp.turn_stiffness,
            turn_damping=jnp.sqrt(gain) * grasp.turn_damping,
            contact=replace(grasp.contact, friction=slip * grasp.contact.friction),
            pad=replace(
                pad,
                friction=slip * pad.friction,
                stiffness=soft * pad.stiffness,
                shear_stiffness=soft * pad.shear_stiffness,
            ),
        )


def axis(quat: Array) -> Array:
    """The z axis [3] of a body in space."""
    return jnp.stack([row[2] for row in rotations.matrix(quat)])


def seen_by(
    observation: str, taxels: tuple[int, int] | None, sensor: GelSight | None
) -> dict[str, Any]:
    """The fields of a task that say what it observes, with what is not given filled in.

    Taxels are 8 by 7, or TacSL's 14 by 10 where they are seen; the sensor is a GelSight Mini with
    pictures of 60 by 80, where they are.

    Raises:
        ValueError: another word for what is observed.
    """
    if observation not in observations.KINDS:
        raise ValueError(
            f"make: observation={observation!r}; it must be one of {', '.join(observations.KINDS)}"
        )
    if observation == "rgb" and sensor is None:
        sensor = gelsight(*cameras.GEL)
    grid = taxels or ((14, 10) if observation == "force" else (8, 7))
    return {"grid": grid, "sensor": sensor, "observation": observation}
