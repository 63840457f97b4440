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
from jaxgpu.inputs.doors import explained

from . import clutter, furnish, plan
from .floor import Floor
from .furnishings import Statistics, statistics
from .house import ROOMS, House, Kind, Objects, Surfaces
from .rows import Rows
from .templates import built

MOST_ROOMS, MOST_DOORS = 16, 24
THICK = 0.1  # m, of walls
SLAB = 0.1  # m, of floor and ceiling
LEAF = 0.04  # m thick, doors and panes
GONE = (0.0, 0.0, -1000.0)  # center of an empty row
ABSENT = (-1.0, -1.0, -1.0)  # half sizes of an empty row


@explained
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


@explained
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
        raise TypeError(f"{name}={arguments.shown(seeds)}; it must be numbers, as range(100)")
    checked = [_check_seed(name, one) for one in seeds]
    if not checked:
        raise ValueError(f"{name} is empty; give at least one, as range(100)")
    made = [_sample_house(seed, plan, rows, objects, surfaces) for seed in checked]
    return jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *made)


def plans() -> dict[str, tuple[str, ...]]:
    """Return the names of the plans, and the rooms of each.

    >>> plans()["4-room"]
    ('Bedroom', 'Bathroom', 'Kitchen', 'LivingRoom')
    """
    return {name: tuple(plan.leaves(tree)) for name, (_, tree) in statistics().plans.items()}


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
    drawn = plan.drawn(rng, tables, name)
    boxes = _empty_table("rows", rows, kind=np.int8(-1), type=np.int16(-1), group=np.int16(-1))
    floor = Floor(drawn)
    doors = _build_walls(drawn, boxes, floor)
    placed = furnish.furnished(rng, tables, drawn, floor)
    for one in placed:
        _add_furniture(tables, one, boxes)
    tops = clutter.surfaces(placed)
    small = clutter.strewn(rng, tables, drawn.rooms, tops)
    nav: Any = floor.navigable()
    return House(
        **boxes.arrays(),
        rooms=_pad_rows(drawn.corners / 10, MOST_ROOMS, np.float32(0)),
        room_type=_pad_rows(
            np.array([ROOMS.index(r) for r in drawn.rooms]), MOST_ROOMS, np.int8(-1)
        ),
        doors=_pad_rows(np.array(doors).reshape(-1, 5), MOST_DOORS, np.float32(-1)),
        nav=nav,
        ceiling=_pad_rows(np.array([drawn.ceiling]), 1, np.float32(0))[0],
        objects=_object_arrays(tables, small, objects),
        surfaces=_surface_arrays(tables, tops, nav, surfaces),
    )


def _empty_table(name: str, most: int, **more: Any) -> Rows:
    """Return an empty table of boxes."""
    absent = {
        "centre": np.array(GONE, np.float32),
        "half": np.array(ABSENT, np.float32),
        "yaw": np.float32(0),
        "room": np.int8(-1),
    }
    return Rows(name, most, absent | more)


def _build_walls(drawn: plan.Plan, boxes: Rows, floor: Floor) -> list[list[float]]:
    """Add floor, ceiling and walls, block the floor under them, and return the doors."""
    width, depth = (a / 10 for a in drawn.size)
    half = (width / 2 + THICK, depth / 2 + THICK, SLAB / 2)
    for kind, z in ((Kind.FLOOR, -SLAB / 2), (Kind.CEILING, drawn.ceiling + SLAB / 2)):
        _add_box(boxes, (width / 2, depth / 2, z), half, kind)
    doors = []
    for side in drawn.sides:
        at, along = side.at / 10, side.low / 10
        wall = _WallBuilder(side, boxes, floor)
        for hole in sorted(side.holes, key=lambda hole: hole.low):
            wall.part(along, hole.low, 0.0, drawn.ceiling, Kind.WALL)
            wall.part(hole.low, hole.high, hole.top, drawn.ceiling, Kind.LINTEL)
            wall.part(hole.low, hole.high, 0.0, hole.bottom, Kind.SILL)
            along = hole.high
            if hole.kind == "door":
                middle = (hole.low + hole.high) / 2
                xy = (at, middle) if side.axis == 0 else (middle, at)
                floor.gate((side.room, side.other), *xy)
                doors.append([side.axis, at, hole.low, hole.high, hole.top])
            else:
                leaf = Kind.PANE if hole.kind == "window" else Kind.DOOR
                wall.part(hole.low, hole.high, hole.bottom, hole.top, leaf)
        wall.part(along, side.high / 10, 0.0, drawn.ceiling, Kind.WALL)
    return doors


class _WallBuilder:
    """Wall built from boxes."""

    def __init__(self, side: plan.Side, boxes: Rows, floor: Floor) -> None:
        self.side, self.boxes, self.floor = side, boxes, floor

    def part(self, low: float, high: float, bottom: float, top: float, kind: int) -> None:
        """Add a box from `low` to `high` along the wall, unless it has no extent."""
        if high - low < 1e-3 or top - bottom < 1e-3:
            return
        thick = LEAF if kind in (Kind.PANE, Kind.DOOR) else THICK
        axis = self.side.axis
        centre, half = np.zeros(3), np.zeros(3)
        centre[[axis, 1 - axis, 2]] = self.side.at / 10, (low + high) / 2, (bottom + top) / 2
        half[[axis, 1 - axis, 2]] = thick / 2, (high - low) / 2, (top - bottom) / 2
        _add_box(self.boxes, centre, half, kind, self.side.room)
        if kind != Kind.LINTEL:
            block = np.array([*centre[:2], *half[:2], 0.0])
            self.floor.free = self.floor.blocked(self.floor.free, block)


def _add_box(boxes: Rows, centre: Any, half: Any, kind: int, room: int = -1) -> None:
    boxes.add(centre=centre, half=half, yaw=0.0, kind=kind, room=room, type=-1, group=-1)


def _add_furniture(tables: Statistics, one: furnish.Placed, boxes: Rows) -> None:
    """Add the parts of a piece of furniture."""
    for part in built(one.item.type, *one.item.size).parts:
        low, high = np.array(part[:3]), np.array(part[3:])
        middle = (low + high) / 2
        boxes.add(
            centre=(*furnish.turned(one, middle[:2]), one.place[2] + middle[2]),
            half=(high - low) / 2,
            yaw=one.yaw,
            kind=Kind.FURNITURE,
            room=one.room,
            type=tables.index(one.item.type),
            group=one.group,
        )


def _object_arrays(tables: Statistics, small: list[clutter.Small], most: int) -> Objects:
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
    table.absent["half"] = np.array(ABSENT[:2], np.float32)
    cells = (np.argwhere(nav) + 0.5) / 10
    for top in tops:
        xy = furnish.turned(top.of, top.middle)
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
