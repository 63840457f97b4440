"""House as arrays of fixed size: oriented boxes, supporting surfaces, and navigable cells.

x and y are in the floor plane and z points up, metres; the corner of the house is the origin. Every
box is rotated about z only, by `yaw`, counter-clockwise from above. All houses have the same
shapes, so that many houses are one pytree with a leading axis and share one compiled program.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry.solids import Boxes, Solids
from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import on_host
from jaxgpu.inputs.fields import number, pytree
from jaxgpu.render import Surface, View

from . import colors

CELL = 0.1  # m, of the grid
CELLS = 256  # of the grid along each side
ROBOT_RADIUS = 0.30  # m, radius of the robot for which the grid is made
ROOMS = ("Kitchen", "LivingRoom", "Bedroom", "Bathroom")


class BoxType:
    """Types of a house's boxes; -1 marks an empty row.

    >>> BoxType.LINTEL
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
    """Small objects to carry, at their initial poses. An empty row has type -1."""

    centre: Array = number(unit="m")  # [M, 3] center, m
    half: Array = number(unit="m")  # [M, 3] half size, m; -1 in empty rows
    yaw: Array = number(unit="rad")  # [M] about z, rad
    type: Array = number(whole=True)  # [M] index in `furnishings.types()`
    room: Array = number(whole=True)  # [M] index of the room
    surface: Array = number(whole=True)  # [M] index of the supporting surface
    count: Array = number(whole=True)  # [] rows in use, which come first


@pytree
class Surfaces:
    """Level rectangles that support objects. An empty row has type -1."""

    centre: Array = number(unit="m")  # [S, 3] center, m
    half: Array = number(unit="m")  # [S, 2] half width and half depth; -1 in empty rows
    yaw: Array = number(unit="rad")  # [S] about z, rad
    type: Array = number(whole=True)  # [S] type of the piece of furniture
    room: Array = number(whole=True)  # [S] index of the room
    group: Array = number(whole=True)  # [S] group of the piece of furniture
    clear: Array = number(unit="m")  # [S] free height above it, m
    gap: Array = number(infinite=True, unit="m")  # [S] from its edge to the nearest navigable cell
    count: Array = number(whole=True)  # [] rows in use, which come first


@pytree
class House:
    """Walls and furniture as boxes, and the data that tasks need.

    Empty rows come last: kind -1, half sizes of -1 and a center 1 km below the floor. Parts of one
    piece of furniture share a `group`.
    """

    centre: Array = number(unit="m")  # [N, 3] center of each box, m
    half: Array = number(unit="m")  # [N, 3] half size along its own axes, m
    yaw: Array = number(unit="rad")  # [N] about z, rad
    kind: Array = number(whole=True)  # [N] a `BoxType`
    room: Array = number(whole=True)  # [N] index of the room
    type: Array = number(whole=True)  # [N] index in `furnishings.types()`, or -1
    group: Array = number(whole=True)  # [N] piece of furniture to which a part belongs, or -1
    count: Array = number(whole=True)  # [] rows in use, which come first
    rooms: Array = number(unit="m")  # [R, 4] minimum x and y, maximum x and y, at wall centers
    room_type: Array = number(whole=True)  # [R] index in `ROOMS`, -1 for none
    # Passable holes: 0 if the wall is at a constant x, 1 at a constant y, -1 for none; that
    # coordinate; start and end along the wall; height of the hole, m.
    doors: Array = number()  # [D, 5]
    nav: Array  # [C, C] whether the robot can stand at the center of the cell and reach it
    ceiling: Array = number(unit="m")  # [] height, m
    objects: Objects  # small objects, in rows of their own
    surfaces: Surfaces  # where objects can be placed

    def free(self, x: Array) -> Array:
        """Return whether the robot may stand at positions x [..., 2] or [..., 3], m: [...].

        >>> from jaxgpu.rl.envs.rearrange import houses
        >>> house = houses.generate(3)
        >>> bool(house.free(jnp.array([-1.0, 2.0])))
        False
        """
        ranges.check_finite("House.free", x=x)
        cell = jnp.floor(jnp.asarray(x) / CELL).astype(jnp.int32)
        i, j = cell[..., 0], cell[..., 1]
        inside = (i >= 0) & (i < self.nav.shape[0]) & (j >= 0) & (j < self.nav.shape[1])
        return inside & self.nav[jnp.where(inside, i, 0), jnp.where(inside, j, 0)]

    def solids(self, centre: Array | None = None, yaw: Array | None = None) -> Solids:
        """Return the boxes of the house, small objects last, for `render.depth_image`.

        Args:
            centre: [M, 3] centers of the small objects, m; by default the initial ones.
            yaw: [M] their yaws, rad; by default the initial ones.

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

    def colors(self) -> Array:
        """Return colors [N + M, 3] in 0 ... 1 of `solids`, for `render.CameraImages.render`.

        >>> from jaxgpu.rl.envs.rearrange import houses
        >>> houses.generate(0).colors().shape
        (704, 3)
        """
        kind = jnp.concatenate([self.kind, jnp.full_like(self.objects.room, -1)])
        return colors.box_colors(kind, jnp.concatenate([self.type, self.objects.type]))

    @on_host
    def view(self) -> View:
        """Return the house without its ceiling as an interactive view for `jaxgpu.show(house)`.

        >>> from jaxgpu.rl.envs.rearrange import houses
        >>> len(houses.generate(0).view().surfaces) > 3
        True
        """
        boxes = self.solids().boxes
        kind = np.concatenate([np.asarray(self.kind), np.full(self.objects.type.shape, 8)])
        here = np.asarray(boxes.is_present) & (kind != BoxType.CEILING)
        parts = []
        for one in np.unique(kind[here]):
            x, faces = _triangles(boxes, np.flatnonzero(here & (kind == one)))
            colour = (*colors.SHELL_COLORS, colors.OBJECT_COLOR)[one]
            ink = "#" + "".join(f"{round(255 * c):02x}" for c in colour)
            parts.append(Surface(x[None], faces, ink))
        return View(surfaces=tuple(parts))


def _triangles(boxes: Boxes, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return corners [8 R, 3] of R boxes, rotated about z, m, and their triangles [12 R, 3]."""
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
