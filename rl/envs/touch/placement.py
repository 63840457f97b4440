"""Place a peg upright on a pad and release it: touch/peg-placement.

After TacSL's task of that name. The pad is round, 100 mm wide and 25 mm high. After the policy's
steps the fingers open for 15 steps and the hand rises for 15. Success: the peg stands on the pad,
within 15 degrees of upright, with its tip at most `within` pad diameters from the center.
Departure: the peg must stand on the pad, not next to it.
"""

import math
from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.touch import GelSight, Grasp, peg_and_pad

from ...environment import register
from .task import State, TouchTask, obs_fields, z_axis

OPEN_STEPS, LIFT_STEPS = 15, 15  # steps
OPEN_WIDTH = 0.04  # m of each finger from the center, open


@pytree
class PegPlacement(TouchTask):
    """Peg placement, whose goal is the tip at the center of the pad with the peg upright.

    >>> from jaxgpu import rl
    >>> rl.make("touch/peg-placement").end_steps  # steps after those of the policy
    30
    """

    within: Array | float = number(default=0.6, above=0)  # [] of the pad's diameter
    lean_within: Array | float = number(
        default=math.radians(15), above=0, most=math.pi, unit="rad"
    )  # [] of the peg
    tolerance: Array | float = number(default=0.005, above=0, unit="m")  # [] of the tip's height

    @property
    def end_steps(self) -> int:
        """Number of steps in which the peg is released."""
        return OPEN_STEPS + LIFT_STEPS

    def command(self, state: State, action: Array) -> tuple[Array, Array, Array]:
        """Return the policy's command; at the end open the fingers, then rise by about 0.3 m."""
        shift, turn, opening = super().command(state, action)
        return release_command(self, state.t - self.max_steps, shift, turn, opening)

    def is_success(self, state: State) -> Array:
        """Return whether the peg stands on the pad, released."""
        upright = z_axis(state.grasp.part_quat)[2] > jnp.cos(self.lean_within)
        height = self.tip(state)[2] - self.goal(state)[2]
        there = self.axis_distance(state) < 2 * self.within * self.grasp.fixture.shape.shape.radius
        over = state.t >= self.max_steps + self.end_steps
        return over & upright & there & (jnp.abs(height) < self.tolerance)


def release_command(
    env: TouchTask, steps: Array, shift: Array, turn: Array, opening: Array
) -> tuple[Array, Array, Array]:
    """Return a command; from step 0 on open the fingers, and then lift the hand."""
    let, up = steps >= 0, steps >= OPEN_STEPS
    still = jnp.zeros(3, shift.dtype)
    # The target leads by so much that the hand rises by 20 mm per step.
    ahead = 0.02 * env.grasp.damping / (env.grasp.stiffness * env.grasp.dt)
    lift = still.at[2].set(jnp.where(up, ahead, 0))
    wide = jnp.asarray(OPEN_WIDTH, opening.dtype)
    return jnp.where(let, lift, shift), jnp.where(let, still, turn), jnp.where(let, wide, opening)


@register("touch/peg-placement")
def make_peg_placement(
    part: str = "round-8",
    diameter: float = 0.1,
    taxels: tuple[int, int] | None = None,
    sensor: GelSight | None = None,
    observation: str = "privileged",
    **parameters: Any,
) -> PegPlacement:
    """Make the placement task of a peg and the pad for it."""
    seen = obs_fields(observation, taxels, sensor)
    grasp = Grasp.from_parts(*peg_and_pad(part, diameter), taxels=seen["grid"], substeps=2)
    return PegPlacement(grasp, **seen, **parameters)
