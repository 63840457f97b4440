"""A house as arrays of fixed size: oriented boxes, surfaces that bear things, and where to walk.

x and y lie in the floor and z points up, metres; the corner of the house is the origin. Every box
is turned about z alone, by `yaw`, counter-clockwise from above. All houses have the same shapes, so
that many are one pytree with a leading axis, and a program is compiled once for all.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.solids import Boxes, Solids
from jaxgpu.inputs import ranges
from jaxgpu.inputs.doors import on_host
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Surface, View

from . import colours

CELL = 0.1  # m, of the grid
CELLS = 256  # of the grid along each side
ROBOT = 0.30  # m, radius of the robot for which the grid is made
ROOMS = ("Kitchen", "LivingRoom", "Bedroom", "Bathroom")


class Kind:
    """What a box of a house is; -1 marks a row that holds none.

    >>> Kind.LINTEL
    3
    """

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

    centre: Array = number(unit="m")  # [M, 3] middle, m
    half: Array = number(unit="m")  # [M, 3] half size, m; -1 in rows that hold none
    yaw: Array = number(unit="rad")  # [M] about z, rad
    type: Array = number(whole=True)  # [M] index in `furnishings.types()`
    room: Array = number(whole=True)  # [M] index of the room
    surface: Array = number(whole=True)  # [M] index of the surface on which it lies
    count: Array = number(whole=True)  # [] rows in use, the first of them


@pytree
class Surfaces:
    """Level rectangles that bear things. A row that holds none has type -1."""

    centre: Array = number(unit="m")  # [S, 3] middle, m
    half: Array = number(unit="m")  # [S, 2] half width and half depth; -1 where none
    yaw: Array = number(unit="rad")  # [S] about z, rad
    type: Array = number(whole=True)  # [S] of the piece of furniture
    room: Array = number(whole=True)  # [S] index of the room
    group: Array = number(whole=True)  # [S] the piece of furniture
    clear: Array = number(unit="m")  # [S] height that is free above it, m
    gap: Array = number(infinite=True, unit="m")  # [S] from its edge to where the robot can stand
    count: Array = number(whole=True)  # [] rows in use, the first of them


@pytree
class House:
    """Walls and furniture as boxes, and what a task has to know of them.

    Rows that hold nothing come last: kind -1, half sizes of -1 and a middle 1 km below the floor.
    Parts of one piece of furniture share a `group`.
    """

    centre: Array = number(unit="m")  # [N, 3] middle of each box, m
    half: Array = number(unit="m")  # [N, 3] half size along its own axes, m
    yaw: Array = number(unit="rad")  # [N] about z, rad
    kind: Array = number(whole=True)  # [N] a `Kind`
    room: Array = number(whole=True)  # [N] index of the room
    type: Array = number(whole=True)  # [N] index in `furnishings.types()`, or -1
    group: Array = number(whole=True)  # [N] piece of furniture of a part, or -1
    count: Array = number(whole=True)  # [] rows in use, the first of them
    rooms: Array = number(unit="m")  # [R, 4] least x and y, largest x and y, middle of walls
    room_type: Array = number(whole=True)  # [R] index in `ROOMS`, -1 for none
    # holes that can be passed: 0 where the wall is at an x, 1 at a y, -1 for none; that place;
    # from and to along the wall; height of the hole, m
    doors: Array = number()  # [D, 5]
    nav: Array  # [C, C] whether the robot may stand in the middle of the cell and come there
    ceiling: Array = number(unit="m")  # [] height, m
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

    def solids(self, centre: Array | None = None, yaw: Array | None = None) -> Solids:
        """The boxes of the house, those of its small things last, for `render.depth_image`.

        Args:
            centre: [M, 3] where the small things are, m; by default where they lie at first.
            yaw: [M] how they are turned, rad; by default as at first.

        >>> from jaxgpu.rl.envs.rearrange import houses
        >>> houses.generate(0).solids().counts
        (704, 0, 0)
        """
        things = self.objects
        shape = things.centre.shape
        centre = things.centre if centre is None else centre
        yaw = things.yaw if yaw is None else yaw
        ranges.numbers("House.solids: centre", centre, shape)
        ranges.numbers("House.solids: yaw", yaw, shape[:-1])
        boxes = Boxes(
            centre=jnp.concatenate([self.centre, centre]),
            half=jnp.concatenate([self.half, things.half]),
            turn=jnp.concatenate([self.yaw, yaw]),
        )
        return Solids(boxes)

    def colours(self) -> Array:
        """Colours [N + M, 3] in 0 ... 1 of the rows of `solids`, for `render.Sight.shaded`.

        >>> from jaxgpu.rl.envs.rearrange import houses
        >>> houses.generate(0).colours().shape
        (704, 3)
        """
        kind = jnp.concatenate([self.kind, jnp.full_like(self.objects.room, -1)])
        return colours.of_boxes(kind, jnp.concatenate([self.type, self.objects.type]))

    @on_host
    def view(self) -> View:
        """The house without its ceiling, to be turned by hand: `jaxgpu.show(house)`.

        >>> from jaxgpu.rl.envs.rearrange import houses
        >>> len(houses.generate(0).view().surfaces) > 3
        True
        """
        boxes = self.solids().boxes
        kind = np.concatenate([np.asarray(self.kind), np.full(self.objects.type.shape, 8)])
        here = np.asarray(boxes.there) & (kind != Kind.CEILING)
        parts = []
        for one in np.unique(kind[here]):
            x, faces = _triangles(boxes, np.flatnonzero(here & (kind == one)))
            colour = (*colours.SHELL, colours.SMALL)[one]
            ink = "#" + "".join(f"{round(255 * c):02x}" for c in colour)
            parts.append(Surface(x[None], faces, ink))
        return View(surfaces=tuple(parts))


def _triangles(boxes: Boxes, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners [8 R, 3] of R of the boxes, turned about z, m, and their triangles [12 R, 3]."""
    signs = np.array(list(product((-1, 1), repeat=3)))
    local = signs * np.asarray(boxes.half)[rows, None]
    c, s = (np.asarray(f(boxes.turn))[rows, None] for f in (np.cos, np.sin))
    x, y = c * local[..., 0] - s * local[..., 1], s * local[..., 0] + c * local[..., 1]
    corners = np.stack([x, y, local[..., 2]], -1) + np.asarray(boxes.centre)[rows, None]
    squares = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4]])
    squares = np.vstack([squares, [[1, 5, 7, 3]]])
    faces = np.concatenate([squares[:, [0, 1, 2]], squares[:, [0, 2, 3]]])
    every = faces[None] + 8 * np.arange(len(corners))[:, None, None]
    return corners.reshape(-1, 3), every.reshape(-1, 3)
