"""Put a peg into its hole: touch/peg-insertion.

After TacSL's task of the name. A peg of `physics.touch.PEGS`, "round-8" unless named, hangs 31 to
40 mm out of the fingers, aslant by up to 18 degrees; the hole is 23 mm deep and, by default, 0.5 mm
wider than the peg (`clearance=None` takes the published hole, 0.114 mm wider). Success: d less than
4.4958 mm, which is not reached beside the hole.
"""

from typing import Any

from jax import Array

from jaxgpu.physics.touch import GelSight, Grasp, peg_and_socket
from jaxgpu.pytree import number, pytree

from ...environment import register
from .task import State, TouchTask, seen_by


@pytree
class PegInsertion(TouchTask):
    """The tip belongs on the hole's floor, the peg upright.

    >>> from jaxgpu import rl
    >>> rl.make("touch/peg-insertion", clearance=None).observation_space.shape
    (56,)
    """

    tolerance: Array | float = number(default=4.4958e-3, above=0, unit="m")  # [] of d

    def is_success(self, state: State) -> Array:
        """Whether the peg is in its hole."""
        return self.distance(state) < self.tolerance


@register("touch/peg-insertion")
def peg_insertion(
    part: str = "round-8",
    clearance: float | None = 0.5e-3,
    taxels: tuple[int, int] | None = None,
    sensor: GelSight | None = None,
    observation: str = "privileged",
    **parameters: Any,
) -> PegInsertion:
    """A peg, and the socket with a hole for it."""
    seen = seen_by(observation, taxels, sensor)
    grasp = Grasp.of(*peg_and_socket(part, clearance), taxels=seen["grid"], substeps=2)
    return PegInsertion(grasp, **seen, **parameters)
