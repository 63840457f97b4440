"""Colours of houses: of floors and walls by their kind, of objects by their type."""

import colorsys

import jax.numpy as jnp
import numpy as np
from jax import Array

from .furnishings import object_types

SHELL_COLORS = (
    (0.70, 0.58, 0.44),  # floor
    (0.95, 0.95, 0.93),  # ceiling
    (0.86, 0.83, 0.77),  # wall
    (0.86, 0.83, 0.77),  # lintel
    (0.86, 0.83, 0.77),  # sill
    (0.72, 0.85, 0.94),  # pane
    (0.52, 0.36, 0.24),  # door
    (0.36, 0.50, 0.62),  # furniture
)
OBJECT_COLOR = (0.90, 0.45, 0.15)  # of small objects if all have the same colour
HUE_STEP = 0.61803398875  # golden ratio: consecutive types get distant hues


def type_colors() -> np.ndarray:
    """Return a colour for each object type, [T, 3] in 0 ... 1.

    >>> type_colors().shape
    (109, 3)
    """
    count = len(object_types())
    hues = (HUE_STEP * np.arange(count)) % 1
    return np.array([colorsys.hsv_to_rgb(h, 0.55, 0.80) for h in hues], np.float32)


def box_colors(kind: Array, thing: Array) -> Array:
    """Return colours [N, 3] in 0 ... 1 of boxes by their `BoxType` [N] and object type [N].

    >>> box_colors(jnp.array([2, 7]), jnp.array([-1, 3])).shape
    (2, 3)
    """
    shell = jnp.asarray(SHELL_COLORS, jnp.float32)[jnp.maximum(kind, 0)]
    return jnp.where(
        (thing >= 0)[:, None], jnp.asarray(type_colors())[jnp.maximum(thing, 0)], shell
    )
