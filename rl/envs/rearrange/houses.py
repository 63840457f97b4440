"""Furnished houses, sampled from the published household statistics.

The same seed gives bitwise the same house. Sampling happens once, on the host; a house is then a
set of arrays, and many houses are the same arrays with a leading axis.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.inputs import arguments, ranges
from jaxgpu.inputs.explanations import explain_errors

from . import clutter, floor_plan, placement
from .floor import Floor
from .furnishings import Statistics, statistics
from .house import ROOMS, BoxType, House, Objects, Surfaces
from .padded_table import PaddedTable
from .templates import build_parts

MAX_ROOMS, MAX_DOORS = 16, 24
WALL_THICK = 0.1  # m, of walls
SLAB_THICK = 0.1  # m, of floor and ceiling
LEAF_THICK = 0.04  # m thick, doors and panes
EMPTY_CENTER = (0.0, 0.0, -1000.0)  # center of an empty row
EMPTY_HALF = (-1.0, -1.0, -1.0)  # half sizes of an empty row


@explain_errors
def generate(
    seed: int,
    *,
    plan: str | None = None,
    rows: int = 512,
    objects: int = 192,
    surfaces: int = 128,
) -> House:
    """Return a furnished house, the same for the same seed.

    Args:
        seed: random seed of the house.
        plan: a name out of `plans()`; by default sampled by its published weight.
        rows: number of rows for boxes of walls and furniture.
        objects: number of rows for small objects.
        surfaces: number of rows for surfaces that support objects.
    Raises:
        ValueError: the house needs more rows; the message states a sufficient number.

    >>> house = generate(3, plan="4-room")
    >>> house.centre.shape, bool(house.nav.any())
    ((512, 3), True)
    """
    made = _sample_house(_check_seed("houses.generate: seed", seed), plan, rows, objects, surfaces)
    return jax.tree.map(jnp.asarray, made)


@explain_errors
def generate_many(
    seeds: Iterable[int],
    *,
    plan: str | None = None,
    rows: int = 512,
    objects: int = 192,
    surfaces: int = 128,
) -> House:
    """Return houses of many seeds as one `House` whose arrays have a leading house axis.

    Args:
        seeds: random seeds of the houses, such as `range(100)`.
        plan: as in `generate`.
        rows: as in `generate`, also for `objects` and `surfaces`.
        objects: number of rows for small objects.
        surfaces: number of rows for surfaces.

    >>> generate_many(range(2), plan="kitchen").centre.shape
    (2, 512, 3)
    """
    name = "houses.generate_many: seeds"
    if not isinstance(seeds, Iterable) or isinstance(seeds, str | bytes):
        raise TypeError(
            f"{name}={arguments.format_value(seeds)}; it must be whole numbers, such as range(100)"
        )
    checked = [_check_seed(name, one) for one in seeds]
    if not checked:
        raise ValueError(f"{name} is empty; give at least one number, such as range(100)")
    made = [_sample_house(seed, plan, rows, objects, surfaces) for seed in checked]
    return jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *made)


def plans() -> dict[str, tuple[str, ...]]:
    """Return the names of the plans, and the rooms of each.

    >>> plans()["4-room"]
    ('Bedroom', 'Bathroom', 'Kitchen', 'LivingRoom')
    """
    return {
        name: tuple(floor_plan.leaf_rooms(tree)) for name, (_, tree) in statistics().plans.items()
    }


def _check_seed(name: str, seed: Any) -> int:
    ranges.numbers(name, seed, (), least=0, whole=True)
    return int(seed)


def _sample_house(seed: int, name: str | None, rows: int, objects: int, surfaces: int) -> House:
    """Sample a house of NumPy arrays."""
    for word, size in (("rows", rows), ("objects", objects), ("surfaces", surfaces)):
        ranges.numbers(f"houses.generate: {word}", size, (), least=1, whole=True)
    tables = statistics()
    if name is not None:
        arguments.word("houses.generate: plan", name, tuple(tables.plans))
    rng = np.random.default_rng(seed)
    drawn = floor_plan.sample_plan(rng, tables, name)
    boxes = _empty_table("rows", rows, kind=np.int8(-1), type=np.int16(-1), group=np.int16(-1))
    floor = Floor(drawn)
    doors = _build_walls(drawn, boxes, floor)
    placed = placement.furnish_rooms(rng, tables, drawn, floor)
    for one in placed:
        _add_furniture(tables, one, boxes)
    tops = clutter.find_surfaces(placed)
    small = clutter.scatter_objects(rng, tables, drawn.rooms, tops)
    nav: Any = floor.navigable_cells()
    return House(
        **boxes.arrays(),
        rooms=_pad_rows(drawn.corners / 10, MAX_ROOMS, np.float32(0)),
        room_type=_pad_rows(
            np.array([ROOMS.index(r) for r in drawn.rooms]), MAX_ROOMS, np.int8(-1)
        ),
        doors=_pad_rows(np.array(doors).reshape(-1, 5), MAX_DOORS, np.float32(-1)),
        nav=nav,
        ceiling=_pad_rows(np.array([drawn.ceiling]), 1, np.float32(0))[0],
        objects=_object_arrays(tables, small, objects),
        surfaces=_surface_arrays(tables, tops, nav, surfaces),
    )


def _empty_table(name: str, most: int, **more: Any) -> PaddedTable:
    """Return an empty table of boxes."""
    absent = {
        "centre": np.array(EMPTY_CENTER, np.float32),
        "half": np.array(EMPTY_HALF, np.float32),
        "yaw": np.float32(0),
        "room": np.int8(-1),
    }
    return PaddedTable(name, most, absent | more)


def _build_walls(drawn: floor_plan.Plan, boxes: PaddedTable, floor: Floor) -> list[list[float]]:
    """Add floor, ceiling and walls, block the floor under them, and return the doors."""
    width, depth = (a / 10 for a in drawn.size)
    half = (width / 2 + WALL_THICK, depth / 2 + WALL_THICK, SLAB_THICK / 2)
    for kind, z in (
        (BoxType.FLOOR, -SLAB_THICK / 2),
        (BoxType.CEILING, drawn.ceiling + SLAB_THICK / 2),
    ):
        _add_box(boxes, (width / 2, depth / 2, z), half, kind)
    doors = []
    for side in drawn.sides:
        at, along = side.at / 10, side.low / 10
        wall = _WallBuilder(side, boxes, floor)
        for hole in sorted(side.holes, key=lambda hole: hole.low):
            wall.part(along, hole.low, 0.0, drawn.ceiling, BoxType.WALL)
            wall.part(hole.low, hole.high, hole.top, drawn.ceiling, BoxType.LINTEL)
            wall.part(hole.low, hole.high, 0.0, hole.bottom, BoxType.SILL)
            along = hole.high
            if hole.kind == "door":
                middle = (hole.low + hole.high) / 2
                xy = (at, middle) if side.axis == 0 else (middle, at)
                floor.add_gate((side.room, side.other), *xy)
                doors.append([side.axis, at, hole.low, hole.high, hole.top])
            else:
                leaf = BoxType.PANE if hole.kind == "window" else BoxType.DOOR
                wall.part(hole.low, hole.high, hole.bottom, hole.top, leaf)
        wall.part(along, side.high / 10, 0.0, drawn.ceiling, BoxType.WALL)
    return doors


class _WallBuilder:
    """Wall built from boxes."""

    def __init__(self, side: floor_plan.WallSection, boxes: PaddedTable, floor: Floor) -> None:
        self.side, self.boxes, self.floor = side, boxes, floor

    def part(self, low: float, high: float, bottom: float, top: float, kind: int) -> None:
        """Add a box from `low` to `high` along the wall, unless it has no extent."""
        if high - low < 1e-3 or top - bottom < 1e-3:
            return
        thick = LEAF_THICK if kind in (BoxType.PANE, BoxType.DOOR) else WALL_THICK
        axis = self.side.axis
        centre, half = np.zeros(3), np.zeros(3)
        centre[[axis, 1 - axis, 2]] = self.side.at / 10, (low + high) / 2, (bottom + top) / 2
        half[[axis, 1 - axis, 2]] = thick / 2, (high - low) / 2, (top - bottom) / 2
        _add_box(self.boxes, centre, half, kind, self.side.room)
        if kind != BoxType.LINTEL:
            block = np.array([*centre[:2], *half[:2], 0.0])
            self.floor.free = self.floor.block(self.floor.free, block)


def _add_box(boxes: PaddedTable, centre: Any, half: Any, kind: int, room: int = -1) -> None:
    boxes.add(centre=centre, half=half, yaw=0.0, kind=kind, room=room, type=-1, group=-1)


def _add_furniture(tables: Statistics, one: placement.PlacedPiece, boxes: PaddedTable) -> None:
    """Add the parts of a piece of furniture."""
    for part in build_parts(one.item.type, *one.item.size).parts:
        low, high = np.array(part[:3]), np.array(part[3:])
        middle = (low + high) / 2
        boxes.add(
            centre=(*placement.to_house_frame(one, middle[:2]), one.place[2] + middle[2]),
            half=(high - low) / 2,
            yaw=one.yaw,
            kind=BoxType.FURNITURE,
            room=one.room,
            type=tables.index(one.item.type),
            group=one.group,
        )


def _object_arrays(tables: Statistics, small: list[clutter.SmallObject], most: int) -> Objects:
    table = _empty_table("objects", most, type=np.int16(-1), surface=np.int16(-1))
    for one in small:
        table.add(
            centre=one.place + np.array([0, 0, one.size[2] / 2]),
            half=one.size / 2,
            yaw=one.yaw,
            type=tables.index(one.type),
            room=one.room,
            surface=one.surface,
        )
    return Objects(**table.arrays())


def _surface_arrays(
    tables: Statistics, tops: list[clutter.Surface], nav: np.ndarray, most: int
) -> Surfaces:
    more = {"group": np.int16(-1), "clear": np.float32(0), "gap": np.float32(np.inf)}
    table = _empty_table("surfaces", most, type=np.int16(-1), **more)
    table.absent["half"] = np.array(EMPTY_HALF[:2], np.float32)
    cells = (np.argwhere(nav) + 0.5) / 10
    for top in tops:
        xy = placement.to_house_frame(top.of, top.middle)
        c, s = np.cos(top.of.yaw), np.sin(top.of.yaw)
        dx, dy = (cells - xy).T
        local = np.stack([c * dx + s * dy, c * dy - s * dx], 1)
        beyond = np.maximum(np.abs(local) - top.half, 0)
        table.add(
            centre=(*xy, top.height),
            half=top.half,
            yaw=top.of.yaw,
            type=tables.index(top.of.item.type),
            room=top.of.room,
            group=top.of.group,
            clear=top.clear,
            gap=np.hypot(*beyond.T).min(initial=np.inf),
        )
    return Surfaces(**table.arrays())


def _pad_rows(rows: np.ndarray, most: int, absent: Any) -> Any:
    """Pad rows to `most` with a value, in its dtype."""
    found = np.full((most, *rows.shape[1:]), absent)
    found[: len(rows)] = rows
    return found
