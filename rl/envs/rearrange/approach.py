"""Lengths of shortest ways of a hand to a place, through the free space about it.

From below the board of a table the straight way to a thing on it is short, and leads nowhere: a
hand has to go about the edge. A cube about the place is cut into cells, each free where a ball of
`ROOM` about its middle meets nothing. Ways begin at the cells that are near to the place and from
which the straight line to it is clear, and lead on from free cell to free cell as those over the
floor do (`geodesic`). A cell without a way has that of the nearest one with a way, and the line to
it. A place that no cell sees has straight ways alone. The last centimetres, which cells are too
wide for, are straight.
"""

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rows

from .geodesic import spread
from .robot import contact
from .robot.contact import Boxes

CELLS, WIDTH = 20, 0.08  # along each side of the cube, and of a cell, m
# from a cell to itself and the seven beyond it, [2, 2, 2], where all are in one row
AROUND = np.ravel_multi_index(np.indices((2, 2, 2)), 3 * (CELLS,)).astype(np.int32)
ROOM = 0.045  # m, of a hand about its middle
SIGHT = 0.15  # m, from a place at most where ways begin
LAST = 0.05, 0.09  # m, of the straight line, within which it counts, and beyond which it does not
LOOKS = 8  # points of a straight line that are to be clear
BOXES = 64  # nearest to the place, that are looked at


def ways(boxes: Array, thing: np.ndarray) -> np.ndarray:
    """Ways from the cells of the cube about a thing to its box, [C^3] m, z the fastest.

    Args:
        boxes: [R, 8] rows of `Boxes`, all that is in the way.
        thing: [8] the row of its own.

    >>> board = jnp.array([[0.0, 0.0, 0.685, 0.4, 0.3, 0.015, 1.0, 0.0]])  # and a thing on it
    >>> row = np.array([0.0, 0.0, 0.73, 0.02, 0.02, 0.03, 1.0, 0.0])
    >>> over, under = ways(board, row).reshape(20, 20, 20)[10, 10, [13, 6]]  # 0.28 m off both
    >>> bool(over < 0.4), bool(under > 0.7)
    (True, True)
    """
    found = np.asarray(_ways(boxes, jnp.asarray(thing, jnp.float32)))
    lost = ~np.isfinite(found)
    if lost.all():
        return np.linalg.norm(_middles(), axis=-1).astype(np.float32).ravel()
    ndimage = importlib.import_module("scipy.ndimage")  # half a second: where it is needed
    search: Any = ndimage.distance_transform_edt(lost, return_indices=True)
    beyond, nearest = search
    return (found[tuple(nearest)] + WIDTH * beyond).astype(np.float32).ravel()


def way(fields: Array, which: Array, x: Array, over: Array) -> tuple[Array, Array]:
    """The way from a place [3] of the cube's frame, [] m, and the unit vector [3] along which it
    gets longer; zero where it has none.

    Between the middles of the cells it is linear along each axis; from beyond the cube it leads
    straight to it first.

    Args:
        fields: [E, C^3] m, of `ways`.
        which: [] of the E.
        x: [3] m, from the middle of the cube.
        over: [3] m, to there from the nearest point of what the way leads to.

    >>> straight = np.linalg.norm(_middles(), axis=-1).reshape(1, -1)  # where nothing is known
    >>> x = jnp.array([0.3, 0.0, 0.4])
    >>> length, slope = way(jnp.asarray(straight), jnp.int32(0), x, x)
    >>> round(float(length), 2), [round(float(a), 1) for a in slope]
    (0.5, [0.6, 0.0, 0.8])
    """
    at = x / WIDTH + (CELLS - 1) / 2
    held = jnp.clip(at, 0.0, CELLS - 1.001)
    low = jnp.floor(held).astype(jnp.int32)
    # number by number: a block that is picked at runtime is a loop on a TPU
    first = (low[0] * CELLS + low[1]) * CELLS + low[2]
    near = fields[which, first + AROUND].astype(x.dtype)
    u, v, w = held - low.astype(x.dtype)
    between = lambda pair, share: pair[0] + share * (pair[1] - pair[0])
    face = between(near, u)
    line = between(face, v)
    along = jnp.stack(
        [
            between(between(near[1] - near[0], v), w),
            between(face[1] - face[0], w),
            line[1] - line[0],
        ]
    )
    off = WIDTH * (at - held)
    slope = unit(jnp.where(off == 0, along / WIDTH, 0.0) + unit(off))
    length, straight = between(line, w) + rows.length(off), rows.length(over)
    share = jnp.clip((straight - LAST[0]) / (LAST[1] - LAST[0]), 0.0, 1.0)
    mixed = share * slope + (1 - share) * unit(over)
    return share * length + (1 - share) * straight, unit(mixed)


def unit(x: Array) -> Array:
    """Of length one along `x` [3], or zero where that is.

    >>> unit(jnp.array([0.0, 3.0, 4.0])).tolist(), unit(jnp.zeros(3)).tolist()
    ([0.0, 0.6..., 0.8...], [0.0, 0.0, 0.0])
    """
    length = rows.length(x)
    return x / jnp.where(length > 0, length, 1.0)


def _middles() -> np.ndarray:
    """Of the cells, from that of the cube, [C, C, C, 3] m."""
    along = (np.arange(CELLS) - (CELLS - 1) / 2) * WIDTH
    return np.stack(np.meshgrid(along, along, along, indexing="ij"), -1)


@jax.jit
def _ways(boxes: Array, thing: Array) -> Array:
    place = thing[:3]
    nearest = jax.lax.top_k(-contact.point(Boxes(boxes), place), min(BOXES, len(boxes)))[1]
    close = Boxes(boxes[nearest])
    gap = jax.vmap(lambda x: jnp.min(contact.point(close, x)))

    offs = jnp.asarray(_middles().reshape(-1, 3), place.dtype)
    middles = place[None] + offs
    free = (gap(middles) > ROOM) & (middles[:, 2] > ROOM)
    box = Boxes(thing)
    own = box.local(tuple(offs.T))
    over = jnp.stack(box.in_space(tuple(x - jnp.clip(x, -h, h) for x, h in zip(own, box.half))), -1)
    straight = rows.length(over)
    # what bears the thing touches the end of the line
    on = [middles - share * over for share in np.arange(LOOKS) / LOOKS]
    clear = jnp.min(jnp.stack([gap(x) for x in on]), 0) > 0
    start = jnp.where(clear & (straight < SIGHT), straight, jnp.inf)
    cube = lambda x: x.reshape(CELLS, CELLS, CELLS)
    return spread(cube(free), cube(start), WIDTH)
