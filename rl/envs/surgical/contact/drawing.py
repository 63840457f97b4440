"""Rendering of a mechanism's geoms as capsules; a box becomes parallel rods."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.rotations import rotate
from jaxgpu.physics.rigid import Model, State

RODS = 8  # per box


def geom_rods(model: Model, state: State) -> tuple[Array, Array, Array, np.ndarray]:
    """Return starts and ends [K, 3], radii [K], m, and body numbers [K] of the rods.

    Spheres and capsules are unchanged. A box is a row of eight rods of its smallest thickness, with
    gaps if it is a wide slab. Planes and other types are omitted.
    """
    layout = model.layout
    place, turn = model.poses(state).to_world(
        np.array(layout.geom_body), model.geoms.pos, model.geoms.quat
    )
    start, end, radius, body = [], [], [], []
    for g, kind in enumerate(layout.geom_kind):
        for low, high, wide in _shape_rods(kind, model.geoms.size[g]):
            for ends, x in ((start, low), (end, high)):
                arm = rotate(turn[:, g], tuple(x))
                ends.append(place[:, g] + jnp.stack([*arm]))
            radius.append(wide)
            body.append(layout.geom_body[g])
    return jnp.stack(start), jnp.stack(end), jnp.stack(radius), np.array(body)


def _shape_rods(kind: str, size: Array) -> list[tuple[Array, Array, Array]]:
    """Return ends [3] and radii of a shape's rods, in its own frame; sizes may be traced."""
    none, axes = jnp.zeros_like(size), jnp.eye(3, dtype=size.dtype)
    if kind == "sphere":
        return [(none, none, size[0])]
    if kind == "capsule":
        half = none.at[2].set(size[1])
        return [(-half, half, size[0])]
    if kind != "box":
        return []
    thin, middle, long = jnp.argsort(size)
    wide = size[thin]
    reach = (size[long] - wide) * axes[long]
    rows = [x * (size[middle] - wide) * axes[middle] for x in np.linspace(-1, 1, RODS)]
    return [(row - reach, row + reach, wide) for row in rows]
