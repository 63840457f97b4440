"""Place a nut on a bolt and turn it: touch/nut-on-bolt.

After TacSL's bolt-and-nut task. The policy sets the nut on the bolt. Then the hand turns by 1 rad
clockwise in 120 steps, pressing down, releases for 15 and rises for 15. The bolt is upright, 41 mm
long, and the nut hangs in the hand, tilted by up to 18 degrees. Success: the nut is within 15
degrees of upright, its axis within `within` thread diameters of the bolt's, and its lower face at
least `engaged` pitches below the top of the bolt. Departure: TacSL requires only the first two
conditions.
"""

import math
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.touch import GelSight, Grasp, nut_and_bolt

from ...environment import register
from .placement import LIFT_STEPS, OPEN_STEPS, release_command
from .task import State, TouchTask, obs_fields, z_axis

TURN, STEPS = 1.0, 120  # rad, and steps, of the final turn
PRESS_DEPTH = 0.003  # m, depth of the hand's target below the hand during the turn


@pytree
class NutOnBolt(TouchTask):
    """Nut on bolt, whose goal is the nut's lower face at the top of the bolt, upright.

    >>> from jaxgpu import rl
    >>> rl.make("touch/nut-on-bolt", part="M12").end_steps
    150
    """

    within: Array | float = number(default=0.6, above=0)  # [] of the thread's diameter
    lean_within: Array | float = number(
        default=math.radians(15), above=0, most=math.pi, unit="rad"
    )  # [] of the nut
    engaged: Array | float = number(default=0.1)  # [] pitches

    @property
    def end_steps(self) -> int:
        """Number of steps in which the nut is turned and released."""
        return STEPS + OPEN_STEPS + LIFT_STEPS

    def depth_bounds(self) -> tuple[Array | float, Array | float]:
        """Return bounds of the lower face's depth below the fingertips, 1/3 to 2/3 of the nut."""
        full = 2 * self.grasp.part.tip
        return 0.33 * full, 0.67 * full

    def command(self, state: State, action: Array) -> tuple[Array, Array, Array]:
        """Return the policy's command; at the end turn the nut and release it."""
        shift, turn, opening = super().command(state, action)
        last = state.t >= self.max_steps
        down = jnp.zeros(3, shift.dtype).at[2].set(-PRESS_DEPTH)
        rate = TURN * self.grasp.turn_damping / (self.grasp.turn_stiffness * self.grasp.dt * STEPS)
        about = jnp.zeros(3, turn.dtype).at[2].set(-rate)
        shift, turn = jnp.where(last, down, shift), jnp.where(last, about, turn)
        return release_command(self, state.t - self.max_steps - STEPS, shift, turn, opening)

    def is_success(self, state: State) -> Array:
        """Return whether the thread holds the nut after its release."""
        upright = z_axis(state.grasp.part_quat)[2] > jnp.cos(self.lean_within)
        thread = self.grasp.part.shape
        down = state.grasp.fixture[2] + self.grasp.fixture.top - self.tip(state)[2]
        there = self.axis_distance(state) < self.within * thread.diameter
        over = state.t >= self.max_steps + self.end_steps
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
    """Make the task of a nut and the bolt for it."""
    seen = obs_fields(observation, taxels, sensor)
    grasp = Grasp.from_parts(*nut_and_bolt(part, clearance), taxels=seen["grid"], substeps=2)
    return NutOnBolt(grasp, **seen, **parameters)
