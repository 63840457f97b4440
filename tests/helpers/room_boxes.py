"""Boxes for robots to collide with, and distances to them, independent of the package's code."""

import jax.numpy as jnp
import numpy as np

from jaxgpu.rl.envs.rearrange.robot import Boxes


def axes_of(yaw):
    """Return the axes of a box rotated about the vertical, as rows."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


def distance(x, middle, half, yaw):
    """Return the distance from points [..., 3] to a box, 0 inside it."""
    local = (x - middle) @ axes_of(yaw).T
    return np.linalg.norm(np.maximum(np.abs(local) - half, 0), axis=-1)


def as_rows(boxes):
    """Return boxes (center, half, yaw) in the package's format."""
    rows = [[*m, *h, np.cos(yaw), np.sin(yaw)] for m, h, yaw in boxes]
    return Boxes(jnp.asarray(rows, jnp.float32))


def room(side=2.5):
    """Return four walls, a table, a shelf at arm height and a tilted crate on a floor."""
    wall = lambda x, y, hx, hy: ((x, y, 1.25), (hx, hy, 1.25), 0.0)
    boxes = [
        ((0.0, 0.0, -0.05), (4.0, 4.0, 0.05), 0.0),
        wall(side, 0.0, 0.05, side),
        wall(-side, 0.0, 0.05, side),
        wall(0.0, side, side, 0.05),
        wall(0.0, -side, side, 0.05),
        ((-1.9, 0.0, 0.73), (0.4, 0.6, 0.02), 0.0),
        ((-1.9, 0.5, 0.355), (0.03, 0.03, 0.355), 0.0),
        ((0.0, 2.3, 1.1), (0.8, 0.15, 0.015), 0.0),
        ((-1.6, -1.6, 0.3), (0.3, 0.2, 0.3), 0.7),
    ]
    boxes = [tuple(np.asarray(part, float) for part in box) for box in boxes]
    return as_rows(boxes), boxes
