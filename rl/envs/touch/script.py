"""Scripted policy that brings a part to its goal, as a teacher for learners.

It turns the part upright and moves its tip above the goal, `TOP_CLEARANCE` above the fixture. While
the tip is aligned, or is already inside the fixture, it moves down. It uses privileged
observations, reduces position and tilt errors at a fixed rate each, and ignores forces.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.rows import length
from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree

from .observations import HAND, PRIVILEGED

# Positions of the required entries in the privileged observation.
WAY, UPRIGHT = slice(0, 3), slice(9, 12)
DESCENT_RATE, TILT_RATE = 6.0, 4.0  # 1/s, rates of descent and of tilt correction
TOP_CLEARANCE, ENTRY_DEPTH = 4e-3, 1e-3  # m above the top of the fixture; m below it: no return
MAX_OFFSET, MAX_LEAN = 0.8e-3, 0.02  # m off the axis, and rad, within which it descends


@pytree
class ScriptedPolicy:
    """Policy that maps an observation to an action; made by `script` of a tactile task."""

    speed: Array | float = number(above=0, unit="m/s")  # [] of the hand at action 1
    spin: Array | float = number(above=0, unit="rad/s")  # [] of the hand at action 1
    rim: Array | float = number(unit="m")  # [] height of the fixture above the tip's goal
    # Rate at which the lateral error is reduced.
    aside: Array | float = number(default=8.0, above=0, unit="1/s", one=True)  # []

    def __call__(self, observation: Array | dict[str, Array]) -> Array:
        """Return the action [6], within -1 and 1, for a vector, or a dictionary with `privileged`.

        Raises:
            ValueError: an observation of the wrong shape, or not finite, or a field of the script
                out of its range.
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
        amiss = 2 * jnp.maximum(length(way[:2]) / MAX_OFFSET, jnp.hypot(x, y) / MAX_LEAN) - 1
        outside = (way[2] - self.rim) / ENTRY_DEPTH + 1
        share = jnp.clip(jnp.minimum(amiss, outside), 0, 1)
        down = DESCENT_RATE * (share * (self.rim + TOP_CLEARANCE) - way[2])
        ahead = jnp.append(-self.aside * way[:2], down)
        turn = jnp.stack([y, -x, jnp.zeros_like(x)])  # rotation towards upright
        return jnp.concatenate(
            [_limit_components(ahead / self.speed), _limit_components(TILT_RATE * turn / self.spin)]
        )


def _limit_components(x: Array) -> Array:
    """Scale a vector down so that its largest component is at most 1."""
    return x / jnp.maximum(jnp.max(jnp.abs(x)), 1.0)
