"""A script that brings a part to its place: a teacher for learners that have one.

It turns the part upright and brings its tip over its place, `CLEAR` above the fixture; while the
tip is aligned there, or is down within the fixture, it goes down. It reads what only a simulation
knows, and takes the tip's way and the part's turn off by a rate each; it knows no forces.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.rows import length
from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree

from .observations import HAND, PRIVILEGED

# where what is needed stands in what an observation has of the part
WAY, UPRIGHT = slice(0, 3), slice(9, 12)
DOWN, TURN = 6.0, 4.0  # 1/s, of the way down and of the lean
CLEAR, WITHIN = 4e-3, 1e-3  # m above the top of the fixture; m below it, where there is no way back
BESIDE, LEAN = 0.8e-3, 0.02  # m beside the axis, and rad, within which it goes down


@pytree
class Script:
    """What it does of an observation of a task of touch, whose `script` makes it."""

    speed: Array | float = number(above=0, unit="m/s")  # [] of the hand at an action of 1
    spin: Array | float = number(above=0, unit="rad/s")  # [] of the same
    rim: Array | float = number(unit="m")  # [] of the fixture above the tip's place
    # of the way beside it
    aside: Array | float = number(default=8.0, above=0, unit="1/s", one=True)  # []

    def __call__(self, observation: Array | dict[str, Array]) -> Array:
        """The action [6], within -1 and 1, of an observation: a vector, or with `privileged`.

        Raises:
            ValueError: an observation of another shape, one that is not finite, or a number of the
                script out of its range.
        """
        ranges.check("script", self)
        seen, whole = observation, HAND + PRIVILEGED
        if isinstance(observation, dict):
            if "privileged" not in observation:
                has = ", ".join(observation) or "nothing"
                raise ValueError(f"script: observation has {has}; it must have `privileged`")
            seen, whole = observation["privileged"], PRIVILEGED
        part = jnp.asarray(ranges.numbers("script: observation", seen, (whole,)))[-PRIVILEGED:]
        if not jnp.issubdtype(part.dtype, jnp.floating):
            part = part.astype(float)
        way, (x, y, _) = part[WAY] / 10, part[UPRIGHT]
        amiss = 2 * jnp.maximum(length(way[:2]) / BESIDE, jnp.hypot(x, y) / LEAN) - 1
        outside = (way[2] - self.rim) / WITHIN + 1
        share = jnp.clip(jnp.minimum(amiss, outside), 0, 1)
        down = DOWN * (share * (self.rim + CLEAR) - way[2])
        ahead = jnp.append(-self.aside * way[:2], down)
        turn = jnp.stack([y, -x, jnp.zeros_like(x)])  # to where the part is upright
        return jnp.concatenate([_bounded(ahead / self.speed), _bounded(TURN * turn / self.spin)])


def _bounded(x: Array) -> Array:
    """As short as its largest component is at most 1."""
    return x / jnp.maximum(jnp.max(jnp.abs(x)), 1.0)
