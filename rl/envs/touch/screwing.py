"""Put a nut on a bolt and give it a turn: touch/nut-on-bolt.

After TacSL's task of bolt and nut: the policy sets the nut on the bolt; then the hand turns by 1
rad clockwise in 120 steps, pressing down, lets go for 15 and goes up for 15. The bolt stands
upright, 41 mm long, and the nut hangs in the hand, aslant by up to 18 degrees. Success: the nut is
within 15 degrees of upright, its axis within `within` thread diameters of the bolt's, and its lower
face below the top of the bolt by at least `engaged` pitches. Departure: TacSL asks for the first
two alone.
"""

import math
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.touch import GelSight, Grasp, nut_and_bolt

from ...environment import register
from .placement import LIFT, OPEN, released
from .task import State, TouchTask, axis, seen_by

TURN, STEPS = 1.0, 120  # rad, and steps, of the last turn
PRESS = 0.003  # m of the hand's target below the hand meanwhile


@pytree
class NutOnBolt(TouchTask):
    """The nut's lower face belongs at the top of the bolt, the nut upright.

    >>> from jaxgpu import rl
    >>> rl.make("touch/nut-on-bolt", part="M12").ending
    150
    """

    within: Array | float = number(default=0.6, above=0)  # [] of the thread's diameter
    lean_within: Array | float = number(
        default=math.radians(15), above=0, most=math.pi, unit="rad"
    )  # [] of the nut
    engaged: Array | float = number(default=0.1)  # [] pitches

    @property
    def ending(self) -> int:
        """Steps in which the nut is turned and let go."""
        return STEPS + OPEN + LIFT

    def below(self) -> tuple[Array | float, Array | float]:
        """How far the nut's lower face is below the fingertips: a third of it, to two thirds, m."""
        full = 2 * self.grasp.part.tip
        return 0.33 * full, 0.67 * full

    def command(self, state: State, action: Array) -> tuple[Array, Array, Array]:
        """That of the policy; then a turn, and the nut is let go."""
        shift, turn, opening = super().command(state, action)
        last = state.t >= self.max_steps
        down = jnp.zeros(3, shift.dtype).at[2].set(-PRESS)
        rate = TURN * self.grasp.turn_damping / (self.grasp.turn_stiffness * self.grasp.dt * STEPS)
        about = jnp.zeros(3, turn.dtype).at[2].set(-rate)
        shift, turn = jnp.where(last, down, shift), jnp.where(last, about, turn)
        return released(self, state.t - self.max_steps - STEPS, shift, turn, opening)

    def is_success(self, state: State) -> Array:
        """Whether the nut is held by the thread, let go."""
        upright = axis(state.grasp.part_quat)[2] > jnp.cos(self.lean_within)
        thread = self.grasp.part.shape
        down = state.grasp.fixture[2] + self.grasp.fixture.top - self.tip(state)[2]
        there = self.beside(state) < self.within * thread.diameter
        over = state.t >= self.max_steps + self.ending
        return over & upright & there & (down > self.engaged * thread.pitch)


@register("touch/nut-on-bolt")
def make_nut_on_bolt(
    part: str = "M16",
    clearance: float | None = None,
    taxels: tuple[int, int] | None = None,
    sensor: GelSight | None = None,
    observation: str = "privileged",
    **parameters: Any,
) -> NutOnBolt:
    """A nut, and the bolt for it."""
    seen = seen_by(observation, taxels, sensor)
    grasp = Grasp.of(*nut_and_bolt(part, clearance), taxels=seen["grid"], substeps=2)
    return NutOnBolt(grasp, **seen, **parameters)
