"""Carrying tasks with dynamics and contact, by `robot.servos`.

Actions and rewards are as in the kinematic tasks, but grasping is physical. An object is held while
both fingers press on it by more than `MIN_GRIP`, and picked once it is held `lift` above its
initial height. It is placed once it rests, not held, within `threshold` of its goal horizontally
and at most `height` above it. The episode fails if the object falls: if its center is more than
`DROP_DEPTH` below both its initial position and its goal. Objects must be narrow enough for the
fingers; `episodes.grasp_episodes` samples such objects.

mobile pick  success: the object is picked.
place        the fingers start closed on the object; success: it is placed.
rearrange    both; the end action decides, as in the kinematic task.
"""

from dataclasses import field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.arguments import format_value
from jaxgpu.inputs.fields import number, pytree

from ....environment import Step, check_actions, register
from ..house import House
from ..robot import servos
from ..robot.contact import Boxes
from ..robot.fetch import Frames, to_frame
from ..robot.movement import Load
from ..robot.servos import MAX_OPENING, MIN_GRIP, Servos, ServoState
from .carry import CarryTask
from .carry_tasks import MobilePick, Place, Rearrange
from .defaults import resolve_episodes
from .episodes import MAX_WIDTH, Episodes
from .task import State

DROP_DEPTH = 0.15  # m, below both initial position and goal, from which an object has fallen
REST_SPEED = 0.05  # m/s, below which an object rests


@pytree
class DynamicState(State):
    """State of a task with dynamics, including the state of the servos."""

    driven: ServoState


@pytree
class DynamicCarry(CarryTask):
    """Base class of the carrying tasks with dynamics.

    The state vector also holds: finger opening and pressure [2], base velocity forward, sideways
    and about the vertical [3], and the lag of the arm behind its targets [7].
    """

    movement: Servos = field(default_factory=Servos)
    lift: Array | float = number(
        default=0.05, above=0, most=1, unit="m"
    )  # [] height at which an object counts as picked

    @property
    def vector_size(self) -> int:
        """Length of the state vector, see the class."""
        return super().vector_size + 12

    def prepare(self, state: State, frames: Frames) -> State:
        """Return the state at rest with the fingers half open."""
        del frames
        wide = jnp.asarray(MAX_OPENING / 2, state.thing.dtype)
        driven = self.movement.begin(state.joints, state.thing, state.thing_axes, wide)
        return _to_dynamic_state(state, replace(driven, open=2 * driven.open))

    @check_actions
    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Move all servo targets and advance the dynamics.

        Raises:
            ValueError: an action of the wrong shape, or not finite.
        """
        del key
        boxes = Boxes(self.episodes.boxes[self.house(state)].astype(state.thing.dtype))
        went = self.movement.move(boxes, state.driven, state.load.half, action[:10])
        hand, turn = went.frames.origin[-1], went.frames.axes[-1]
        load = Load(
            held=went.driven.press > MIN_GRIP,
            half=state.load.half,
            place=to_frame(turn, went.thing - hand),
            axes=to_frame(turn[None], went.axes),
        )
        after = replace(
            state,
            driven=went.driven,
            joints=went.joints,
            load=load,
            thing=went.thing,
            thing_axes=went.axes,
            t=state.t + 1,
            left_out=state.left_out + went.left_out.astype(state.left_out.dtype),
        )
        lay = self._object_row(state.episode)[2]
        taken = load.held & (after.thing[2] > lay + self.lift)
        first = taken & ~state.picked
        after = replace(after, picked=state.picked | taken)
        placed = (
            self.is_placed(after)
            & ~load.held
            & (rows.length(servos.object_velocity(went.driven)) < REST_SPEED)
        )
        done, failed = self.ends(state, after, action, placed)
        fell = after.thing[2] < jnp.minimum(lay, self.goal(state)[2]) - DROP_DEPTH
        paid = jnp.where(first, self.pick_bonus, 0.0)
        return self.outcome(after, went.frames, done, (failed | fell) & ~done, paid)

    def vector(self, state: Any, frames: Frames) -> list[Array]:
        """Return the parts of the state vector, as the class describes."""
        driven = state.driven
        q, v = driven.physics.qpos, driven.physics.qvel
        c, s = jnp.cos(q[2]), jnp.sin(q[2])
        base = jnp.stack([c * v[0] + s * v[1], c * v[1] - s * v[0], v[2]])
        fingers = jnp.stack(
            [jnp.mean(q[servos.FINGERS]) / MAX_OPENING, jnp.tanh(driven.press / MIN_GRIP)]
        )
        return [*super().vector(state, frames), fingers, base, driven.arm - q[servos.ARM]]


@pytree
class DynamicPick(DynamicCarry, MobilePick):
    """Task of going to an object, closing the fingers on it and lifting it.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/mobile-pick-dynamic")
    >>> type(env).__name__, env.action_space.shape, env.observation_space.shape
    ('DynamicPick', (10,), (79,))
    """

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Return success once the object is picked."""
        del before, action
        return state.picked, jnp.zeros_like(placed)


@pytree
class DynamicPlace(DynamicCarry, Place):
    """Task of bringing the object between the fingers to its goal and leaving it there.

    >>> from jaxgpu import rl
    >>> rl.make("rearrange/place-dynamic").action_space.shape
    (10,)
    """

    def prepare(self, state: State, frames: Frames) -> State:
        """Return the state with the object between the fingers."""
        del frames
        load = servos.finger_load(state.load.half)
        driven, thing, axes = self.movement.init_holding(state.joints, load)
        picked = jnp.bool_(True)
        state = replace(state, load=load, thing=thing, thing_axes=axes, picked=picked)
        return _to_dynamic_state(state, driven)


@pytree
class DynamicRearrange(DynamicCarry, Rearrange):
    """Task of picking an object, leaving it at its goal, and signalling the end.

    >>> from jaxgpu import rl
    >>> rl.make("rearrange/rearrange-dynamic").action_space.shape
    (11,)
    """


def _to_dynamic_state(state: State, driven: ServoState) -> DynamicState:
    parts = {name: getattr(state, name) for name in State.__dataclass_fields__}
    return DynamicState(**parts, driven=driven)


def _check_parameters(
    houses: House | None, episodes: Episodes | None, parameters: dict[str, Any]
) -> dict[str, Any]:
    """Return the parameters with episodes added; reject options that friction makes useless."""
    for word in ("safe_drop", "crowded"):
        if word in parameters:
            raise ValueError(
                f"make: {word}={parameters[word]!r}; a task with contact holds an object by "
                "friction and has no such rule; leave it out"
            )
    if "movement" in parameters and not isinstance(parameters["movement"], Servos):
        raise TypeError(
            f"make: movement={format_value(parameters['movement'])}; it must be Servos, since this "
            "task simulates forces"
        )
    given = resolve_episodes("grasp_episodes", houses, episodes)
    half = np.asarray(given.things)[np.asarray(given.house), np.asarray(given.target), 3:5].min(1)
    wide = int(np.sum(half > MAX_WIDTH / 2))
    if wide:
        raise ValueError(
            f"make: {wide} of {len(half)} objects are wider than the {1000 * MAX_WIDTH:.0f} mm "
            "that the fingers span; make episodes by rearrange.tasks.grasp_episodes"
        )
    return {"episodes": given, **parameters}


@register("rearrange/mobile-pick-dynamic")
def make_driven_pick(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> DynamicPick:
    """Make mobile pick with dynamics in the given houses, or in four default ones.

    >>> make_driven_pick().lift
    0.05
    """
    return DynamicPick(**_check_parameters(houses, episodes, parameters))


@register("rearrange/place-dynamic")
def make_driven_place(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> DynamicPlace:
    """Make the place task with dynamics in the given houses, or in four default ones.

    >>> make_driven_place().threshold
    0.15
    """
    return DynamicPlace(**_check_parameters(houses, episodes, parameters))


@register("rearrange/rearrange-dynamic")
def make_driven_rearrange(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> DynamicRearrange:
    """Make the full task with dynamics in the given houses, or in four default ones.

    >>> make_driven_rearrange().end_action
    True
    """
    return DynamicRearrange(**_check_parameters(houses, episodes, parameters))
