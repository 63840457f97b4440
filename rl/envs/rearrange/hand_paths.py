"""Lengths of shortest paths of a hand to a position, through the free space around it.

From below a table top the straight line to an object on it is short but blocked: a hand has to go
around the edge. A cube around the position is divided into cells; a cell is free if a ball of
radius `CLEARANCE` about its center touches nothing. Paths start at cells close to the position from
which the straight line to it is clear, and continue between free cells as over the floor
(`geodesic`). A cell without a path uses that of the nearest cell with one, plus the line to it. If
no cell has a clear line, all paths are straight. The last centimetres, for which cells are too
coarse, are straight.
"""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows

from .geodesic import shortest_paths
from .robot import contact
from .robot.contact import Boxes

CELLS, WIDTH = 20, 0.08  # cells along each side of the cube; cell width, m
# Offsets in the flattened cube from a cell to itself and its seven upper neighbours, [2, 2, 2].
CORNERS = np.ravel_multi_index(np.indices((2, 2, 2)), 3 * (CELLS,)).astype(np.int32)
CLEARANCE = 0.045  # m, clearance of a hand about its center
MAX_START = 0.15  # m, maximum distance from the position at which paths start
BLEND_RANGE = 0.05, 0.09  # m of straight distance: only the line counts below, only the path above
NUM_POINTS = 8  # points of a straight line that must be clear
NUM_BOXES = 64  # number of closest boxes that are tested


def path_fields(boxes: Array, thing: np.ndarray) -> np.ndarray:
    """Return path lengths from the cells of a cube to the box of an object, [C^3] m, z fastest.

    Args:
        boxes: [R, 8] rows of `Boxes`, all obstacles.
        thing: [8] row of the box at the center of the cube.

    >>> board = jnp.array([[0.0, 0.0, 0.685, 0.4, 0.3, 0.015, 1.0, 0.0]])  # and a thing on it
    >>> row = np.array([0.0, 0.0, 0.73, 0.02, 0.02, 0.03, 1.0, 0.0])
    >>> fields = path_fields(board, row).reshape(20, 20, 20)
    >>> over, under = fields[10, 10, [13, 6]]  # 0.28 m off both
    >>> bool(over < 0.4), bool(under > 0.7)
    (True, True)
    """
    found = np.asarray(_compute_path_lengths(boxes, jnp.asarray(thing, jnp.float32)))
    lost = ~np.isfinite(found)
    if lost.all():
        return np.linalg.norm(_cell_centers(), axis=-1).astype(np.float32).ravel()
    ndimage = importlib.import_module("scipy.ndimage")  # imports in half a second
    search: Any = ndimage.distance_transform_edt(lost, return_indices=True)
    beyond, nearest = search
    return (found[tuple(nearest)] + WIDTH * beyond).astype(np.float32).ravel()


def path_length(fields: Array, which: Array, x: Array, over: Array) -> tuple[Array, Array]:
    """Return the path length from a position [3] in the cube, [] m, and its unit gradient [3].

    Lengths are interpolated linearly between cell centers; from outside, a straight line leads to
    the cube. The gradient is zero where it is undefined.

    Args:
        fields: [E, C^3] m, of `path_fields`.
        which: [] index of the field.
        x: [3] m, position relative to the center of the cube.
        over: [3] m, vector to there from the nearest point of the target.

    >>> straight = np.linalg.norm(_cell_centers(), axis=-1).reshape(1, -1)  # where nothing is known
    >>> x = jnp.array([0.3, 0.0, 0.4])
    >>> length, slope = path_length(jnp.asarray(straight), jnp.int32(0), x, x)
    >>> round(float(length), 2), [round(float(a), 1) for a in slope]
    (0.5, [0.6, 0.0, 0.8])
    """
    at = x / WIDTH + (CELLS - 1) / 2
    held = jnp.clip(at, 0.0, CELLS - 1.001)
    low = jnp.floor(held).astype(jnp.int32)
    # Single elements are indexed because dynamic slices of blocks become loops on a TPU.
    first = (low[0] * CELLS + low[1]) * CELLS + low[2]
    near = fields[which, first + CORNERS].astype(x.dtype)
    u, v, w = held - low.astype(x.dtype)
    interpolate = lambda pair, share: pair[0] + share * (pair[1] - pair[0])
    face = interpolate(near, u)
    line = interpolate(face, v)
    along = jnp.stack(
        [
            interpolate(interpolate(near[1] - near[0], v), w),
            interpolate(face[1] - face[0], w),
            line[1] - line[0],
        ]
    )
    off = WIDTH * (at - held)
    slope = unit_vector(jnp.where(off == 0, along / WIDTH, 0.0) + unit_vector(off))
    length, straight = interpolate(line, w) + rows.length(off), rows.length(over)
    share = jnp.clip((straight - BLEND_RANGE[0]) / (BLEND_RANGE[1] - BLEND_RANGE[0]), 0.0, 1.0)
    mixed = share * slope + (1 - share) * unit_vector(over)
    return share * length + (1 - share) * straight, unit_vector(mixed)


def unit_vector(x: Array) -> Array:
    """Return the unit vector along `x` [3], or zero for a zero vector.

    >>> unit_vector(jnp.array([0.0, 3.0, 4.0])).tolist(), unit_vector(jnp.zeros(3)).tolist()
    ([0.0, 0.6..., 0.8...], [0.0, 0.0, 0.0])
    """
    length = rows.length(x)
    return x / jnp.where(length > 0, length, 1.0)


def _cell_centers() -> np.ndarray:
    """Return the centers of the cells relative to the center of the cube, [C, C, C, 3] m."""
    along = (np.arange(CELLS) - (CELLS - 1) / 2) * WIDTH
    return np.stack(np.meshgrid(along, along, along, indexing="ij"), -1)


@jax.jit
def _compute_path_lengths(boxes: Array, thing: Array) -> Array:
    place = thing[:3]
    nearest = jax.lax.top_k(
        -contact.point_distances(Boxes(boxes), place), min(NUM_BOXES, len(boxes))
    )[1]
    close = Boxes(boxes[nearest])
    gap = jax.vmap(lambda x: jnp.min(contact.point_distances(close, x)))

    offs = jnp.asarray(_cell_centers().reshape(-1, 3), place.dtype)
    middles = place[None] + offs
    free = (gap(middles) > CLEARANCE) & (middles[:, 2] > CLEARANCE)
    box = Boxes(thing)
    own = box.to_box_frame(tuple(offs.T))
    over = jnp.stack(box.to_world(tuple(x - jnp.clip(x, -h, h) for x, h in zip(own, box.half))), -1)
    straight = rows.length(over)
    # A support under the object touches the end of the line, so the end is not tested.
    on = [middles - share * over for share in np.arange(NUM_POINTS) / NUM_POINTS]
    clear = jnp.min(jnp.stack([gap(x) for x in on]), 0) > 0
    start = jnp.where(clear & (straight < MAX_START), straight, jnp.inf)
    to_cube = lambda x: x.reshape(CELLS, CELLS, CELLS)
    return shortest_paths(to_cube(free), to_cube(start), WIDTH)
