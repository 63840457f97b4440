"""Base class of the tasks of a gripper with tactile sensing.

After TacSL's tasks (Akinola et al. 2024, arXiv:2408.06506), on `jaxgpu.physics.touch.Grasp`: a hand
without an arm holds a part between two pads and must bring it to its goal on or in a fixture.

Actions [6] within -1 ... 1: offset of the hand's target from the hand, in `max_shift`, and its
rotation about the world axes, in `max_turn`, at 60 Hz. With K and D of the impedance an action of 1
is a velocity of K max_shift / D, 0.12 m/s, and 1.8 rad/s; 0 brakes, and does not hold a position.

Reward per step, with d the mean distance of four points on the part's axis, 1/4 and 1/12 m above
and below its tip, from their goals:

    -0.1 w d + 0.1 / (exp(50 d) + 1e-4 + exp(-50 d)) - 0.001 |a - a'| - penalty |force on the part|

where a' is the previous action, and w is 10 if the tip is laterally off its goal and below the top
of the fixture, else 1. One degree of tilt is 2.9 mm of d.

An episode has `max_steps` steps of the policy, then those of the task's ending, which ignore
actions; it only ends by the time limit. Departures: there is no arm, the hand touches only the
part, gravity acts on the part, and the fixture stands on the table.
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

from ...environment import Step, check_actions
from ...spaces import Box, float_dtype
from . import cameras, observations
from .drawing import draw_grasp
from .script import ScriptedPolicy

FINGERTIP = 0.013  # m from the center between the pads down to the end of the fingers
LEVERS = (-1 / 4, -1 / 12, 1 / 12, 1 / 4)  # m of the points on the part's axis from its tip


@pytree
class State:
    """State of hand, part and fixture, random parameters of the episode, and the last action."""

    grasp: GraspState
    action: Array  # [6] the last action
    error: Array  # [3] of the fixture's observed position, m
    factors: Array  # [3] random factors of impedance, friction and pad stiffness
    t: Array  # [] steps since the start


@pytree
class TouchTask(ABC):
    """Base class of tactile tasks: a part in a gripper, and its goal."""

    grasp: Grasp
    max_shift: Array | float = number(default=0.01, above=0, unit="m")  # [] along each axis
    max_turn: Array | float = number(default=0.05, above=0, unit="rad")  # [] about each axis
    tilt: Array | float = number(
        default=np.pi / 10, least=0, most=1, unit="rad"
    )  # [] maximum initial tilt of the part about the grip's axis
    # [] maximum distance of hand and fixture from the center of the table along x and y
    spread: Array | float = number(default=0.1, least=0, unit="m")
    height: Array | float = number(default=0.15, above=0, unit="m")  # [] of the fingertips, mean
    height_spread: Array | float = number(default=0.05, least=0, unit="m")  # [] in each direction
    lean: Array | float = number(default=0.1, least=0, most=1, unit="rad")  # [] of the hand
    yaw: Array | float = number(default=1.0, least=0, most=3.15, unit="rad")  # [] of the hand
    place_error: Array | float = number(
        default=0.0, least=0, unit="m"
    )  # [] maximum error of the fixture's observed position, along each axis
    gain_spread: Array | float = number(default=0.0, least=0, below=1)  # [] of impedance, relative
    friction_spread: Array | float = number(default=0.2, least=0, below=1)  # [] relative
    pad_spread: Array | float = number(default=0.0, least=0, below=1)  # [] of stiffness, relative
    penalty: Array | float = number(default=0.0, least=0, unit="1/N")  # [] of the force on the part
    max_steps: int = size(default=256, least=1)  # steps of the policy
    grid: tuple[int, int] = static(default=(8, 7))  # rows and columns of taxels on a pad
    sensor: GelSight | None = None  # of the gel images, if they are observed
    observation: str = static(default="privileged")  # a name in `observations.KINDS`

    action_space = Box(-1.0, 1.0, (6,))  #: shift and rotation, in `max_shift` and `max_turn`
    differentiable = True  #: piecewise: contact starts point by point

    @property
    def observation_space(self) -> Any:
        """Space that `observations` describes."""
        return observations.space(self.observation, self.grid, self.sensor)

    @property
    def end_steps(self) -> int:
        """Number of steps at the end, in which the task ignores the policy's actions."""
        return 0

    @abstractmethod
    def is_success(self, state: State) -> Array:
        """Return whether the part is at its goal, and the ending is over."""

    def depth_bounds(self) -> tuple[Array | float, Array | float]:
        """Return bounds of the tip's initial depth below the fingertips: minimum and maximum, m."""
        full = 2 * self.grasp.part.tip
        return 0.616 * full, 0.8 * full

    def reach(self) -> Array | float:
        """Return the mean depth of the tip below the center between the pads, m."""
        low, high = self.depth_bounds()
        return FINGERTIP + 0.5 * (low + high)

    @property
    def script(self) -> ScriptedPolicy:
        """Scripted policy that solves the task, a teacher of `rl.DAgger` and `rl.KickstartedPPO`.

        It maps an observation, a vector [56] or a dictionary with `privileged`, to an action [6],
        and rejects invalid observations.

        >>> import jax
        >>> from jaxgpu import rl
        >>> env = rl.make("touch/peg-placement")
        >>> state, seen = env.reset(jax.random.key(0))
        >>> env.script(seen).shape
        (6,)
        """
        hand, fixture = self.grasp, self.grasp.fixture
        return ScriptedPolicy(
            speed=hand.stiffness * self.max_shift / hand.damping,
            spin=hand.turn_stiffness * self.max_turn / hand.turn_damping,
            rim=fixture.top - fixture.goal,
        )

    def command(self, state: State, action: Array) -> tuple[Array, Array, Array]:
        """Return translation [3] m and rotation [3] rad of the hand's target, and opening [] m."""
        zero = jnp.zeros((), action.dtype)
        return self.max_shift * action[:3], self.max_turn * action[3:], zero

    def stagger(self, state: State, key: Array) -> State:
        """Return an initial state whose clock is ahead by a random number of steps.

        Copies that start a training together then do not end their first episodes together.
        """
        return replace(state, t=jax.random.randint(key, (), 0, self.max_steps, state.t.dtype))

    def reset(self, key: Array) -> tuple[State, Any]:
        """Sample poses of hand and fixture, and the tilted part in the hand, all at rest."""
        drawn = jax.random.uniform(
            key, (16,), float_dtype(), -1, 1
        )  # each call compiles a long program
        place, above, raised, lean, yaw, tilt, held, error, factors = jnp.split(
            drawn, (2, 4, 5, 7, 8, 9, 10, 13)
        )
        fixture = jnp.append(self.spread * place, 0)
        up = self.height + FINGERTIP + self.height_spread * raised
        hand, zero = jnp.append(self.spread * above, up), jnp.zeros(1, float_dtype())
        rotation = lambda *angle: rotations.from_rotvec(jnp.concatenate(angle))
        turn = rotations.product(
            rotation(self.lean * lean, zero), rotation(zero, zero, self.yaw * yaw)
        )
        aslant = rotation(zero, self.tilt * tilt, zero)
        quat = jnp.stack(rotations.product(turn, aslant))
        # The tip turns about the center of the part's section between the pads.
        low, high = self.depth_bounds()
        tip = jnp.asarray(self.grasp.part.tip, float_dtype())
        below = low + 0.5 * (1 + held[0]) * (high - low)
        middle = -FINGERTIP + 0.5 * jnp.minimum(2 * tip - below, 2 * FINGERTIP)
        own = jnp.zeros(3, float_dtype()).at[2].set(tip - below - FINGERTIP - middle)
        own = jnp.stack(rotations.rotate(jnp.stack(aslant), tuple(own))).at[2].add(middle)
        part = hand + jnp.stack(rotations.rotate(jnp.stack(turn), tuple(own)))
        scene = self.grasp.init(hand, part, fixture, quat, jnp.stack(turn), self.opening())
        spread = jnp.stack([self.gain_spread, self.friction_spread, self.pad_spread])
        state = State(
            grasp=scene,
            action=jnp.zeros(6, float_dtype()),
            error=self.place_error * error,
            factors=jnp.exp(factors * jnp.log1p(spread.astype(float_dtype()))),
            t=jnp.int32(0),
        )
        return state, self.observe(state)

    def opening(self) -> Array:
        """Return the initial opening of the fingers, m."""
        return self.grasp.closed_opening(self.reach() - self.grasp.part.tip).astype(float_dtype())

    @check_actions
    def step(self, state: State, action: Array, key: Array) -> Step:
        """Advance one control step of the hand; `key` is unused."""
        del key
        action = jnp.clip(action, -1, 1).astype(float_dtype())
        shift, turn, opening = self.command(state, action)
        moved = self._randomized_grasp(state.factors).step(state.grasp, shift, turn, opening)
        new = replace(state, grasp=moved, action=action, t=state.t + 1)
        far = self.distance(new)
        change = length(action - state.action)
        reward = self._task_reward(new, far) - 0.001 * change
        over = new.t >= self.max_steps + self.end_steps
        info = {"success": self.is_success(new), "distance": far}
        return Step(new, self.observe(new), reward, jnp.zeros_like(over), over, info)

    def observe(self, state: State) -> Any:
        """Return the observation named by `observation`: a vector, or a dictionary of arrays."""
        kind, grasp, scene = self.observation, self.grasp, state.grasp
        below = self.reach()
        hand = observations.hand_obs(scene, state.error, state.action, below, grasp.fixture.goal)
        way = self.tip(state) - self.goal(state)
        told = observations.privileged_obs(scene, state.error, way, self.distance(state))
        if kind == "privileged":
            return jnp.concatenate([hand, told])
        parts = {"hand": hand, "privileged": told}
        if kind == "force":
            parts["field"] = observations.field(scene.field, self.grid)
        elif kind == "rgb":
            parts["gels"] = cameras.gel_images(observations.check_sensor(self.sensor), grasp, scene)
        elif kind == "depth":
            parts["wrist"] = cameras.wrist_image(grasp, scene)
        return parts

    def scene(self, state: State) -> Capsules:
        """Return the hand, the part and the fixture as capsules."""
        return draw_grasp(self.grasp, state.grasp, self.is_success(state))

    def tip(self, state: State) -> Array:
        """Return the center of the part's lower face, [3] m."""
        return state.grasp.part - self.grasp.part.tip * z_axis(state.grasp.part_quat)

    def goal(self, state: State) -> Array:
        """Return the position that the tip of the held part should reach, [3] m."""
        return state.grasp.fixture.at[2].add(self.grasp.fixture.goal)

    def distance(self, state: State) -> Array:
        """Return d, the mean distance of points on the part's axis from their goals, [] m."""
        levers = jnp.array(LEVERS, state.action.dtype)[:, None]
        up = jnp.zeros(3, state.action.dtype).at[2].set(1)
        along = z_axis(state.grasp.part_quat) - up
        return jnp.mean(length((self.tip(state) - self.goal(state))[None] + levers * along[None]))

    def axis_distance(self, state: State) -> Array:
        """Return the distance of the held part's tip from the axis of the fixture, [] m."""
        return length((self.tip(state) - state.grasp.fixture)[:2])

    def _task_reward(self, state: State, far: Array) -> Array:
        low = self.tip(state)[2] < state.grasp.fixture[2] + self.grasp.fixture.top
        amiss = low & (self.axis_distance(state) > self.width())
        weight = jnp.where(amiss, 10, 1)
        # The smaller of both exponentials is factored out, so that neither overflows.
        close = jnp.exp(-50 * far)
        near = close / (1 + 1e-4 * close + close**2)
        return -0.1 * weight * far + 0.1 * near - self.penalty * length(state.grasp.reaction)

    def width(self) -> Array:
        """Return the lateral distance beyond which a tip below the top is off its goal, [] m."""
        points = jnp.asarray(self.grasp.part.points, float_dtype())
        return jnp.max(jnp.abs(points[:, 0]))

    def _randomized_grasp(self, factors: Array) -> Grasp:
        """Return the gripper with the random parameters of an episode."""
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


def z_axis(quat: Array) -> Array:
    """Return the z axis [3] of a body in the world."""
    return jnp.stack([row[2] for row in rotations.matrix(quat)])


def obs_fields(
    observation: str, taxels: tuple[int, int] | None, sensor: GelSight | None
) -> dict[str, Any]:
    """Return the fields of a task that define its observation, with defaults filled in.

    By default there are 8 by 7 taxels, or TacSL's 14 by 10 if they are observed. The sensor is a
    GelSight Mini with images of 60 by 80 if these are observed.

    Raises:
        ValueError: an unknown name of an observation.
    """
    if observation not in observations.KINDS:
        raise ValueError(
            f"make: observation={observation!r}; it must be one of {', '.join(observations.KINDS)}"
        )
    if observation == "rgb" and sensor is None:
        sensor = gelsight(*cameras.GEL)
    grid = taxels or ((14, 10) if observation == "force" else (8, 7))
    return {"grid": grid, "sensor": sensor, "observation": observation}
