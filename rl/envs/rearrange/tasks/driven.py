"""The tasks of carrying with a robot that weighs something, by contact: `robot.servos`.

Actions and rewards are those of the kinematic tasks. There is no rule of grasping: a thing is held
while both fingers press on it by more than `HELD`, and taken once it is held `lift` above where it
lay. It is placed where it rests, not held, within `threshold` of its goal in the plane and at most
`height` above it. It is a failure that the thing falls: that its middle is more than `DROP` below
both the place where it lay and its goal. The fingers close on things that are narrow enough; these
are what `episodes.grasping` draws.

mobile pick  success: the thing is taken.
place        the thing is between the fingers at first, closed on it; success: it is placed.
rearrange    both; the end action decides, as in the kinematic task.
"""

from dataclasses import field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows
from jaxgpu.inputs.arguments import shown
from jaxgpu.inputs.fields import number, pytree

from ....environment import Step, register, whole_actions
from ..house import House
from ..robot import servos
from ..robot.contact import Boxes
from ..robot.fetch import Frames, in_frame
from ..robot.movement import Load
from ..robot.servos import HELD, WIDEST, Driven, Servos
from .carry import Carry
from .episodes import NARROW, Episodes
from .rearranging import MobilePick, Place, Rearrange
from .standard import standard
from .task import State

DROP = 0.15  # m, that a thing may come to lie lower than at first and than at its goal
STILL = 0.05  # m/s, below which a thing rests


@pytree
class DrivenState(State):
    """The same, and what the servos drive."""

    driven: Driven


@pytree
class DrivenCarry(Carry):
    """The vector of a state has further: how far the fingers are open and their press [2], the
    speed of the base ahead, aside and about [3], and how far the arm lags behind its targets [7].
    """

    movement: Servos = field(default_factory=Servos)
    lift: Array | float = number(
        default=0.05, above=0, most=1, unit="m"
    )  # [] of a thing that is taken

    @property
    def vector_size(self) -> int:
        """As said above."""
        return super().vector_size + 12

    def prepared(self, state: State, frames: Frames) -> State:
        """At rest, the fingers half open."""
        del frames
        wide = jnp.asarray(WIDEST / 2, state.thing.dtype)
        driven = self.movement.begin(state.joints, state.thing, state.thing_axes, wide)
        return _driven(state, replace(driven, open=2 * driven.open))

    @whole_actions
    def step(self, state: Any, action: Array, key: Array) -> Step:
        """Move all targets, and the robot after them.

        Raises:
            ValueError: an action of another shape, or one that is not finite.
        """
        del key
        boxes = Boxes(self.episodes.boxes[self.house(state)].astype(state.thing.dtype))
        went = self.movement.move(boxes, state.driven, state.load.half, action[:10])
        hand, turn = went.frames.origin[-1], went.frames.axes[-1]
        load = Load(
            held=went.driven.press > HELD,
            half=state.load.half,
            place=in_frame(turn, went.thing - hand),
            axes=in_frame(turn[None], went.axes),
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
        lay = self._thing(state.episode)[2]
        taken = load.held & (after.thing[2] > lay + self.lift)
        first = taken & ~state.picked
        after = replace(after, picked=state.picked | taken)
        placed = (
            self.is_placed(after) & ~load.held & (rows.length(servos.speed(went.driven)) < STILL)
        )
        done, failed = self.ends(state, after, action, placed)
        fell = after.thing[2] < jnp.minimum(lay, self.goal(state)[2]) - DROP
        paid = jnp.where(first, self.pick_bonus, 0.0)
        return self.outcome(after, went.frames, done, (failed | fell) & ~done, paid)

    def vector(self, state: Any, frames: Frames) -> list[Array]:
        """As the class says."""
        driven = state.driven
        q, v = driven.physics.qpos, driven.physics.qvel
        c, s = jnp.cos(q[2]), jnp.sin(q[2])
        base = jnp.stack([c * v[0] + s * v[1], c * v[1] - s * v[0], v[2]])
        fingers = jnp.stack([jnp.mean(q[servos.FINGERS]) / WIDEST, jnp.tanh(driven.press / HELD)])
        return [*super().vector(state, frames), fingers, base, driven.arm - q[servos.ARM]]


@pytree
class DrivenPick(DrivenCarry, MobilePick):
    """Go to a thing, close the fingers on it and lift it.

    >>> from jaxgpu import rl
    >>> env = rl.make("rearrange/mobile-pick-dynamic")
    >>> type(env).__name__, env.action_space.shape, env.observation_space.shape
    ('DrivenPick', (10,), (79,))
    """

    def ends(
        self, before: State, state: State, action: Array, placed: Array
    ) -> tuple[Array, Array]:
        """Over when the thing is taken."""
        del before, action
        return state.picked, jnp.zeros_like(placed)


@pytree
class DrivenPlace(DrivenCarry, Place):
    """Bring what is between the fingers to its goal, and leave it there.

    >>> from jaxgpu import rl
    >>> rl.make("rearrange/place-dynamic").action_space.shape
    (10,)
    """

    def prepared(self, state: State, frames: Frames) -> State:
        """With the thing between the fingers."""
        del frames
        load = servos.between_fingers(state.load.half)
        driven, thing, axes = self.movement.carried(state.joints, load)
        picked = jnp.bool_(True)
        state = replace(state, load=load, thing=thing, thing_axes=axes, picked=picked)
        return _driven(state, driven)


@pytree
class DrivenRearrange(DrivenCarry, Rearrange):
    """Take a thing, bring it to its goal, leave it there, and say that all is done.

    >>> from jaxgpu import rl
    >>> rl.make("rearrange/rearrange-dynamic").action_space.shape
    (11,)
    """


def _driven(state: State, driven: Driven) -> DrivenState:
    parts = {name: getattr(state, name) for name in State.__dataclass_fields__}
    return DrivenState(**parts, driven=driven)


def _held(
    houses: House | None, episodes: Episodes | None, parameters: dict[str, Any]
) -> dict[str, Any]:
    """Parameters with the episodes, after what friction has no use for was refused."""
    for word in ("safe_drop", "crowded"):
        if word in parameters:
            raise ValueError(
                f"make: {word}={parameters[word]!r}; friction alone holds one thing here, so that "
                "a task by contact has no such rule; leave it out"
            )
    if "movement" in parameters and not isinstance(parameters["movement"], Servos):
        raise TypeError(
            f"make: movement={shown(parameters['movement'])}; it must be Servos, which drive what "
            "has masses"
        )
    given = standard("grasping", houses, episodes)
    half = np.asarray(given.things)[np.asarray(given.house), np.asarray(given.target), 3:5].min(1)
    wide = int(np.sum(half > NARROW / 2))
    if wide:
        raise ValueError(
            f"make: {wide} of {len(half)} things are wider than the {1000 * NARROW:.0f} mm that "
            "the fingers span; draw episodes by rearrange.tasks.grasping"
        )
    return {"episodes": given, **parameters}


@register("rearrange/mobile-pick-dynamic")
def make_driven_pick(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> DrivenPick:
    """Mobile pick by contact in houses: those given, or four.

    >>> make_driven_pick().lift
    0.05
    """
    return DrivenPick(**_held(houses, episodes, parameters))


@register("rearrange/place-dynamic")
def make_driven_place(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> DrivenPlace:
    """Placing by contact in houses: those given, or four.

    >>> make_driven_place().threshold
    0.15
    """
    return DrivenPlace(**_held(houses, episodes, parameters))


@register("rearrange/rearrange-dynamic")
def make_driven_rearrange(
    houses: House | None = None, episodes: Episodes | None = None, **parameters: Any
) -> DrivenRearrange:
    """The whole task by contact in houses: those given, or four.

    >>> make_driven_rearrange().end_action
    True
    """
    return DrivenRearrange(**_held(houses, episodes, parameters))
