"""Insert a peg into its hole: touch/peg-insertion.

After TacSL's task of that name. A peg of `physics.touch.PEGS`, by default "round-8", protrudes 31
to 40 mm from the fingers, tilted by up to 18 degrees. The hole is 23 mm deep and by default 0.5 mm
wider than the peg (`clearance=None` selects the published hole, 0.114 mm wider). Success: d less
than 4.4958 mm, which a peg next to the hole cannot reach.

The published reward is that of `task`. Above the hole, d hardly depends on lateral errors of tenths
of a millimetre. So each step has the additional reward

    aim (e / (e + a) + h)

where a is the mean distance of the peg's two ends from the axis of the hole, e = 1 mm, and h the
fraction of the hole's depth to which the tip is inserted. `aim=0` restores the published reward.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.rows import length
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.physics.touch import GelSight, Grasp, peg_and_socket

from ...environment import register
from .task import State, TouchTask, obs_fields, z_axis

ALIGN_SCALE = 1e-3  # m of the peg's ends from the axis, at which the reward is half


@pytree
class PegInsertion(TouchTask):
    """Peg insertion, whose goal is the tip on the hole's floor with the peg upright.

    >>> from jaxgpu import rl
    >>> rl.make("touch/peg-insertion", clearance=None).observation_space.shape
    (56,)
    """

    tolerance: Array | float = number(default=4.4958e-3, above=0, unit="m")  # [] of d
    aim: Array | float = number(default=0.1, least=0)  # [] weight of alignment and depth

    def is_success(self, state: State) -> Array:
        """Return whether the peg is in its hole."""
        return self.distance(state) < self.tolerance

    def _task_reward(self, state: State, far: Array) -> Array:
        """Return the published reward plus that for alignment and depth in the hole."""
        fixture, along = self.grasp.fixture, z_axis(state.grasp.part_quat)
        tip = self.tip(state) - state.grasp.fixture
        ends = jnp.stack([tip, tip + 2 * self.grasp.part.tip * along])
        aligned = ALIGN_SCALE / (ALIGN_SCALE + jnp.mean(length(ends[:, :2])))
        share = jnp.clip((fixture.top - tip[2]) / (fixture.top - fixture.goal), 0, 1)
        depth = jnp.where(self.axis_distance(state) < self.width(), share, 0)
        return super()._task_reward(state, far) + self.aim * (aligned + depth)


@register("touch/peg-insertion")
def make_peg_insertion(
    part: str = "round-8",
    clearance: float | None = 0.5e-3,
    taxels: tuple[int, int] | None = None,
    sensor: GelSight | None = None,
    observation: str = "privileged",
    **parameters: Any,
) -> PegInsertion:
    """Make the insertion task of a peg and the socket with a hole for it."""
    seen = obs_fields(observation, taxels, sensor)
    grasp = Grasp.from_parts(*peg_and_socket(part, clearance), taxels=seen["grid"], substeps=2)
    return PegInsertion(grasp, **seen, **parameters)
