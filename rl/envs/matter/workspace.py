"""Workspaces of a tool: projections to the closest position within a vessel."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from jaxgpu.inputs import ranges
from jaxgpu.inputs.fields import number, pytree, static


@pytree
class Unbounded:
    """Workspace without limits.

    >>> Unbounded().project(jnp.array([-1.0, 1.5]))
    Array([-1. ,  1.5], dtype=float32)
    """

    def project(self, x: Array) -> Array:
        """Return the position [D] itself, m."""
        ranges.check_finite("project", x=x)
        return x


@pytree
class BoxWorkspace:
    """Box-shaped workspace.

    >>> BoxWorkspace((0.0, 0.0), (1.0, 2.0)).project(jnp.array([-1.0, 1.5]))
    Array([0. , 1.5], dtype=float32)
    """

    lower: Any = number(unit="m")  # [D] corner, m
    upper: Any = number(unit="m")  # [D] opposite corner, m

    def project(self, x: Array) -> Array:
        """Return the closest position [D] in the box, m."""
        ranges.check_finite("project", x=x)
        return jnp.clip(x, jnp.asarray(self.lower, x.dtype), jnp.asarray(self.upper, x.dtype))


@pytree
class CylinderWorkspace:
    """Disc-shaped workspace, or in 3-D the infinite cylinder through it.

    >>> CylinderWorkspace((0.0, 0.0), 1.0).project(jnp.array([3.0, 4.0]))
    Array([0.6, 0.8], dtype=float32)
    """

    middle: Any = number(unit="m")  # [2] m
    radius: Array | float = number(above=0, unit="m")  # [] m
    axes: tuple[int, int] = static(default=(0, 1))  # axes of the disc's plane

    def project(self, x: Array) -> Array:
        """Return the closest position [D], m; coordinates off the disc's plane do not change."""
        ranges.check_finite("project", x=x)
        arm = [x[i] - self.middle[k] for k, i in enumerate(self.axes)]
        square = arm[0] * arm[0] + arm[1] * arm[1]
        out = square > self.radius**2
        share = jnp.where(out, self.radius / jnp.sqrt(jnp.where(out, square, 1)), 1)
        for k, i in enumerate(self.axes):
            x = x.at[i].set(self.middle[k] + share * arm[k])
        return x
