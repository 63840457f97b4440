"""Floor plans of houses: rectangular rooms, the doors that connect them, and windows.

A rectangle is split in two recursively, across its longer side and in proportion to the shares of a
tree of rooms. Rooms that share a wall of sufficient length may have a door. The doors form a
spanning tree of minimum cost, so that every room is reachable, and bathrooms are entered through
their suite. Lengths in a plan are whole decimetres, so that adjoining walls coincide exactly.
"""

from dataclasses import dataclass, replace

import numpy as np

from .furnishings import Statistics

AREA = {"Kitchen": 4.5, "LivingRoom": 6.0, "Bedroom": 4.5, "Bathroom": 2.4}  # area units of a room
MIN_SIDE, MAX_SIDE, MAX_ASPECT = 20, 250, 2.6  # sides of rooms and house, dm; aspect ratio
DOOR_WALL, OPENED_WALL = 14, 20  # dm, minimum wall length for a door, and for an opening
CORNER = 0.15  # m, minimum distance of a hole from the ends of a wall
SILL = 0.9  # m, height of a window above the floor
TRIES = 200


@dataclass(frozen=True)
class Hole:
    """Hole in a wall, m."""

    kind: str  # "door", "entrance" or "window"
    low: float  # start along the wall
    high: float  # end along the wall
    bottom: float  # height of its lower edge
    top: float  # height of its upper edge


@dataclass(frozen=True)
class WallSection:
    """Straight piece of wall between two rooms, or between a room and the outside."""

    axis: int  # 0: the wall is at a constant x, along y; 1: at a constant y
    at: int  # position on that axis, dm
    low: int  # dm
    high: int  # dm
    room: int  # index of the room
    other: int = -1  # index of the other room, -1: outside
    holes: tuple[Hole, ...] = ()  # doors and windows

    @property
    def length(self) -> int:
        """Length, dm."""
        return self.high - self.low


@dataclass(frozen=True)
class Plan:
    """Floor plan: the rooms, and the walls between and around them."""

    size: tuple[int, int]  # dm
    rooms: tuple[str, ...]  # types of the rooms
    corners: np.ndarray  # [R, 4] minimum x and y, maximum x and y, dm
    sides: tuple[WallSection, ...]  # all walls
    ceiling: float  # m


def sample_plan(rng: np.random.Generator, tables: Statistics, name: str | None) -> Plan:
    """Sample a plan with the given name, or one by the published weights.

    Raises:
        RuntimeError: no plan with connectable rooms was found; with the package's tables a few
            tries suffice.
    """
    names = list(tables.plans)
    weights = np.array([tables.plans[one][0] for one in names], float)
    name = name or names[rng.choice(len(names), p=weights / weights.sum())]
    ceiling = min(2.5 + 4.5 * rng.beta(1.25, 5.5), 4.0)
    for _ in range(TRIES):
        rooms, size = _sample_rooms(rng, tables.plans[name][1])
        corners = np.array([room[1] for room in rooms])
        sides = np.sort(corners[:, 2:] - corners[:, :2], 1)
        if sides[:, 0].min() < MIN_SIDE or (sides[:, 1] > MAX_ASPECT * sides[:, 0]).any():
            continue
        inner = _inner_walls(corners)
        joined = _choose_doors(rng, rooms, inner)
        if joined is not None:
            names = tuple(room[0] for room in rooms)
            made = [_add_door(rng, tables, s, names, ceiling) if s in joined else s for s in inner]
            outer = _outer_walls(rng, tables, corners, names, size, ceiling)
            walls = (*made, *outer)
            return Plan(size=size, rooms=names, corners=corners, sides=walls, ceiling=ceiling)
    raise RuntimeError(f"houses.generate: no plan {name!r} in {TRIES} tries; give another seed")


def _sample_rooms(rng: np.random.Generator, tree: list) -> tuple[list, tuple[int, int]]:
    """Return name, corners and suite of every room, and the size of the house."""
    area = sum(AREA[room] for room in leaf_rooms(tree)) * rng.uniform(1.6, 2.2) ** 2
    aspect = rng.uniform(0.65, 1.5)
    width, depth = (round(10 * np.sqrt(area * k)) for k in (aspect, 1 / aspect))
    size = (min(width, MAX_SIDE), min(depth, MAX_SIDE))
    return _split_rectangle(rng, (0, 0, *size), tree, ()), size


def leaf_rooms(tree: list) -> list[str]:
    """Return the rooms at the leaves of a tree of shares, in order."""
    found = []
    for _, inner in tree:
        found += [inner] if isinstance(inner, str) else leaf_rooms(inner)
    return found


def _split_rectangle(rng: np.random.Generator, corners: tuple, nodes: list, suite: tuple) -> list:
    """Split the rectangle among the nodes of a tree."""
    if len(nodes) == 1:
        inner = nodes[0][1]
        if isinstance(inner, str):
            return [(inner, corners, suite)]
        return _split_rectangle(rng, corners, inner, (*suite, id(inner)))
    sums = np.cumsum([share for share, _ in nodes])
    k = 1 + int(np.argmin(np.abs(sums[:-1] - sums[-1] / 2)))
    part = sums[k - 1] / sums[-1]
    first, second = nodes[:k], nodes[k:]
    if rng.random() < 0.5:
        first, second, part = second, first, 1 - part
    x0, y0, x1, y1 = corners
    across = (x1 - x0) * rng.uniform(0.85, 1.15) > y1 - y0
    low, high = (x0, x1) if across else (y0, y1)
    middle = low + part * rng.uniform(0.9, 1.1) * (high - low)
    at = int(np.clip(round(middle), low + 1, high - 1))
    one, two = (
        ((x0, y0, at, y1), (at, y0, x1, y1)) if across else ((x0, y0, x1, at), (x0, at, x1, y1))
    )
    return _split_rectangle(rng, one, first, suite) + _split_rectangle(rng, two, second, suite)


def _inner_walls(corners: np.ndarray) -> list[WallSection]:
    """Return the walls between rooms."""
    found = []
    for i, a in enumerate(corners):
        for j, b in enumerate(corners[:i]):
            for axis in (0, 1):
                for at in {a[axis], a[axis + 2]} & {b[axis], b[axis + 2]}:
                    low = max(a[1 - axis], b[1 - axis])
                    high = min(a[3 - axis], b[3 - axis])
                    if high > low:
                        found.append(
                            WallSection(
                                axis=axis, at=int(at), low=int(low), high=int(high), room=i, other=j
                            )
                        )
    return found


def _choose_doors(
    rng: np.random.Generator, rooms: list, inner: list[WallSection]
) -> set[WallSection] | None:
    """Return the walls that get a door, or None if the rooms cannot all be connected."""
    public = [room[0] in ("Kitchen", "LivingRoom") for room in rooms]
    wet = [room[0] == "Bathroom" for room in rooms]

    def cost(side: WallSection) -> float:
        i, j = side.room, side.other
        suite = bool(rooms[i][2]) and rooms[i][2] == rooms[j][2]
        base = 2.0 - public[i] - public[j] + 2.0 * (wet[i] and wet[j])
        bath = wet[i] or wet[j]
        return base + (bath and not suite) - 1.5 * (bath and suite) + 0.5 * rng.random()

    root = list(range(len(rooms)))

    def find_root(i: int) -> int:
        return i if root[i] == i else find_root(root[i])

    joined = set()
    fit = [side for side in inner if side.length >= DOOR_WALL]
    for _, side in sorted(((cost(s), s) for s in fit), key=lambda pair: pair[0]):
        i, j = find_root(side.room), find_root(side.other)
        further = public[side.room] and public[side.other] and rng.random() < 0.5
        if i != j or further:
            root[i] = j
            joined.add(side)
    return joined if len({find_root(i) for i in range(len(rooms))}) == 1 else None


def _add_door(
    rng: np.random.Generator, tables: Statistics, side: WallSection, names: tuple, ceiling: float
) -> WallSection:
    """Return the wall with its door, or an opening between kitchen and living room."""
    pair = {names[side.room], names[side.other]}
    low, high = side.low / 10, side.high / 10
    open_plan = pair <= {"Kitchen", "LivingRoom"} and rng.random() < 0.375
    if open_plan and side.length >= OPENED_WALL:
        low, high = low + CORNER, high - CORNER
        hole = Hole(kind="door", low=low, high=high, bottom=0.0, top=ceiling)
    else:
        wide = side.length >= 26 and rng.random() < 0.4
        kinds = tables.holes["double" if wide else "door"]
        hole = _sample_hole(rng, "door", kinds[rng.integers(len(kinds))], (low, high), 0.0, ceiling)
    return _add_holes(side, hole)


def _sample_hole(
    rng: np.random.Generator,
    kind: str,
    size: np.ndarray,
    span: tuple[float, float],
    bottom: float,
    ceiling: float,
) -> Hole:
    start = rng.uniform(span[0] + CORNER, span[1] - CORNER - size[0])
    top = min(bottom + size[1], ceiling - 0.1)
    return Hole(kind=kind, low=start, high=start + size[0], bottom=bottom, top=top)


def _add_holes(side: WallSection, *holes: Hole) -> WallSection:
    return replace(side, holes=holes)


def _outer_walls(
    rng: np.random.Generator,
    tables: Statistics,
    corners: np.ndarray,
    names: tuple,
    size: tuple[int, int],
    ceiling: float,
) -> list[WallSection]:
    """Return the outer walls: windows in all rooms but bathrooms, and one entrance."""
    bare = []
    for i, c in enumerate(corners):
        for axis in (0, 1):
            for at in (c[axis], c[axis + 2]):
                if at in (0, size[axis]):
                    low, high = int(c[1 - axis]), int(c[3 - axis])
                    bare.append(WallSection(axis=axis, at=int(at), low=low, high=high, room=i))
    public = [s for s in bare if names[s.room] in ("Kitchen", "LivingRoom")] or bare
    entrance = public[rng.integers(len(public))]
    wanted = {i: rng.choice(3, p=(0.125, 0.375, 0.5)) for i in range(len(names))}
    found = []
    for k in rng.permutation(len(bare)):
        side, span = bare[k], (bare[k].low / 10, bare[k].high / 10)
        if side == entrance:
            kinds = tables.holes["door"]
            size_ = kinds[rng.integers(len(kinds))]
            side = _add_holes(side, _sample_hole(rng, "entrance", size_, span, 0.0, ceiling))
        elif names[side.room] != "Bathroom" and wanted[side.room] > 0:
            kinds = tables.holes["window"]
            fit = kinds[kinds[:, 0] < side.length / 10 - 2 * CORNER - 0.1]
            if len(fit):
                size_ = fit[rng.integers(len(fit))]
                bottom = max(min(SILL, ceiling - 0.1 - size_[1]), 0.3)
                side = _add_holes(side, _sample_hole(rng, "window", size_, span, bottom, ceiling))
                wanted[side.room] -= 1
        found.append(side)
    return found
