"""A house as arrays of fixed size: oriented boxes, surfaces that bear things, and where to walk.

x and y lie in the floor and z points up, metres; the corner of the house is the origin. Every box
is turned about z alone, by `yaw`, counter-clockwise from above. All houses have the same shapes, so
that many are one pytree with a leading axis, and a program is compiled once for all.
"""

from enum import IntEnum

import jax.numpy as jnp
from jax import Array

from jaxgpu import ranges
from jaxgpu.pytree import pytree

CELL = 0.1  # m, of the grid
CELLS = 256  # of the grid along each side
ROBOT = 0.30  # m, radius of the robot for which the grid is made
ROOMS = ("Kitchen", "LivingRoom", "Bedroom", "Bathroom")


class Kind(IntEnum):
    """What a box of a house is; -1 marks a row that holds none."""

    FLOOR = 0
    CEILING = 1
    WALL = 2
    LINTEL = 3
    SILL = 4
    PANE = 5
    DOOR = 6
    FURNITURE = 7


@pytree
class Objects:
    """Small things to carry, where they lie at first. A row that holds none has type -1."""

    centre: Array  # [M, 3] middle, m
    half: Array  # [M, 3] half size, m; -1 in rows that hold none
    yaw: Array  # [M] about z, rad
    type: Array  # [M] index in `furnishings.types()`
    room: Array  # [M] index of the room
    surface: Array  # [M] index of the surface on which it lies
    count: Array  # [] rows in use, the first of them


@pytree
class Surfaces:
    """Level rectangles that bear things. A row that holds none has type -1."""

    centre: Array  # [S, 3] middle, m
    half: Array  # [S, 2] half width and half depth, m; -1 in rows that hold none
    yaw: Array  # [S] about z, rad
    type: Array  # [S] of the piece of furniture
    room: Array  # [S] index of the room
    group: Array  # [S] the piece of furniture
    clear: Array  # [S] height that is free above it, m
    gap: Array  # [S] from its edge to the nearest place where the robot can stand, m
    count: Array  # [] rows in use, the first of them


@pytree
class House:
    """Walls and furniture as boxes, and what a task has to know of them.

    Rows that hold nothing come last: kind -1, half sizes of -1 and a middle 1 km below the floor.
    Parts of one piece of furniture share a `group`.
    """

    centre: Array  # [N, 3] middle of each box, m
    half: Array  # [N, 3] half size along its own axes, m
    yaw: Array  # [N] about z, rad
    kind: Array  # [N] a `Kind`
    room: Array  # [N] index of the room
    type: Array  # [N] index in `furnishings.types()`, -1 for what is no furniture
    group: Array  # [N] piece of furniture that a part belongs to, -1 for none
    count: Array  # [] rows in use, the first of them
    rooms: Array  # [R, 4] least x and y, largest x and y of each room, middle of the walls, m
    room_type: Array  # [R] index in `ROOMS`, -1 for none
    # holes that can be passed: 0 where the wall is at an x, 1 at a y, -1 for none; that place;
    # from and to along the wall; height of the hole, m
    doors: Array  # [D, 5]
    nav: Array  # [C, C] whether the robot may stand in the middle of the cell and come there
    ceiling: Array  # [] height, m
    objects: Objects  # small things, in rows of their own
    surfaces: Surfaces  # where things can lie

    def free(self, x: Array) -> Array:
        """Whether the robot may stand at places x [..., 2] or [..., 3], m: [...].

        >>> from jaxgpu.rl.envs.rearrange import houses
        >>> house = houses.generate(3)
        >>> bool(house.free(jnp.array([-1.0, 2.0])))
        False
        """
        ranges.finite("House.free", x=x)
        cell = jnp.floor(jnp.asarray(x) / CELL).astype(jnp.int32)
        i, j = cell[..., 0], cell[..., 1]
        inside = (i >= 0) & (i < self.nav.shape[0]) & (j >= 0) & (j < self.nav.shape[1])
        return inside & self.nav[jnp.where(inside, i, 0), jnp.where(inside, j, 0)]


def cell_centres(cells: Array) -> Array:
    """Middles [..., 2] of cells [..., 2] of the grid, m.

    >>> cell_centres(jnp.array([2, 4])).tolist()
    [0.25, 0.45000001788139343]
    """
    cells = ranges.numbers("cell_centres: cells", cells, whole=True)
    return (cells + 0.5) * CELL
