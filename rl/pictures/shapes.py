"""Shapes of a mechanism's geoms as capsules, for pictures: boxes as rods side by side."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.rotations import turned
from jaxgpu.physics.rigid import Model, State


def rods(model: Model, state: State) -> tuple[Array, Array, Array, np.ndarray]:
    """Starts and ends [K, 3], radii [K], m, and the number of the body of each [K].

    Balls and capsules are as they are; a box is a row of rods, as thick as it is thin. Planes and
    other kinds are left out.
    """
    layout, sizes = model.layout, np.asarray(model.geoms.size)
    place, turn = model.poses(state).of(
        np.array(layout.geom_body), model.geoms.pos, model.geoms.quat
    )
    start, end, radius, body = [], [], [], []
    for g, kind in enumerate(layout.geom_kind):
        for low, high, wide in _parts(kind, sizes[g]):
            for ends, x in ((start, low), (end, high)):
                arm = turned(turn[:, g], tuple(jnp.asarray(x, place.dtype)))
                ends.append(place[:, g] + jnp.stack([*arm]))
            radius.append(wide)
            body.append(layout.geom_body[g])
    return jnp.stack(start), jnp.stack(end), jnp.asarray(radius, place.dtype), np.array(body)


def _parts(kind: str, size: Any) -> list[tuple[Any, Any, Any]]:
    """Ends [3] and radii of the rods of a shape, in its own axes."""
    if kind == "sphere":
        return [(np.zeros(3), np.zeros(3), size[0])]
    if kind == "capsule":
        half = np.array([0, 0, size[1]])
        return [(-half, half, size[0])]
    if kind != "box":
        return []
    thin, middle, long = np.argsort(size)
    wide = size[thin]
    reach = max(size[long] - wide, 0.0) * np.eye(3)[long]
    count = int(np.ceil(size[middle] / wide))
    places = np.linspace(-1, 1, count) * (size[middle] - wide) if count > 1 else [0.0]
    rows = [x * np.eye(3)[middle] for x in places]
    return [(row - reach, row + reach, wide) for row in rows]
