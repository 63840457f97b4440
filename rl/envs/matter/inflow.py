"""Nozzles: the layers that they emit, and initially empty bodies."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgpu.physics.continuum import Body


def nozzle_layer(d: int, radius: float, spacing: float, along: int, ahead: float) -> np.ndarray:
    """Return points [n, D] of a layer that a nozzle emits: a segment in 2-D, a disc in 3-D.

    The nozzle points along an axis, 0 or 1, and the layer is `ahead` of its center, m.
    """
    count = round(2 * radius / spacing)
    side = (np.arange(count) + 0.5) * spacing - radius
    across = np.stack([a.ravel() for a in np.meshgrid(*(side,) * (d - 1), indexing="ij")], 1)
    across = across[np.sum(across**2, 1) < radius**2]
    return np.insert(across, along, ahead, axis=1).astype(np.float32)


def empty_body(
    layer: np.ndarray, material: Any, density: float, spacing: float, layers: float
) -> Body:
    """Return a body without particles, with capacity for `layers` layers and one more.

    Particles fill cubes with the edge `spacing`, m.
    """
    d = layer.shape[1]
    capacity = (int(np.ceil(layers)) + 1) * len(layer)
    none = jnp.zeros((0, d), jnp.float32)
    return Body(none, material, spacing**d, density, capacity=capacity)
