"""Placement of furniture in rooms such that the robot can still reach all of it.

A piece is placed in a corner, at a wall or in the middle, as its type is annotated. It is accepted
on four conditions. It overlaps no other piece and leaves the space in front of them free. The doors
of the room stay connected through it. At least a fifth of the room stays reachable. The robot can
come close to the piece. So every generated house is navigable by construction.
"""

from dataclasses import dataclass

import numpy as np

from .floor import Floor
from .floor_plan import Plan
from .furnishings import Statistics
from .house import CELL
from .pieces import Item, Piece, sample_group, sample_piece
from .templates import build_parts

TYPICAL = {
    "Kitchen": ("CounterTop", "Fridge"),
    "LivingRoom": ("Television", "DiningTable", "Sofa"),
    "Bedroom": ("Bed", "Dresser"),
    "Bathroom": ("Toilet", "Sink"),
}
NUM_PIECES, PIECE_ODDS = (1, 4, 5, 6, 7), (0.005, 0.01, 0.02, 0.1, 0.865)  # pieces per room
GROUP_ODDS, RARE_ODDS = 0.6, 0.2  # probability of a group; of a type that is rare in such a room
TRIES = 10  # positions tried per piece
WALL_GAP = 0.1  # m from the center line of a wall to the back of a piece
FRONT_GAP, SIDE_GAP = 0.5, 0.35  # m left free in front of a piece; around a piece in the middle
MIN_REACHABLE = 0.2  # fraction of a room's floor that must stay reachable
MAX_STAND = 0.7  # m, maximum distance from a piece to where the robot can stand


@dataclass(frozen=True)
class PlacedPiece:
    """Piece of furniture at its pose in the house."""

    item: Item  # its type and size
    room: int  # index of the room
    place: np.ndarray  # [3] center of its base, m
    yaw: float  # about z, rad
    group: int  # the same for all parts of one piece
    parent: int  # group of the piece on which it stands, or -1


def furnish_rooms(
    rng: np.random.Generator, tables: Statistics, plan: Plan, floor: Floor
) -> list[PlacedPiece]:
    """Furnish all rooms of the house; `floor` loses the cells under the furniture."""
    found: list[PlacedPiece] = []
    for room in range(len(plan.rooms)):
        one = _Room(rng, tables, plan, floor, room)
        one.furnish(found)
    return found


class _Room:
    """Room during furnishing."""

    def __init__(
        self,
        rng: np.random.Generator,
        tables: Statistics,
        plan: Plan,
        floor: Floor,
        room: int,
    ) -> None:
        self.rng, self.tables, self.floor, self.room = rng, tables, floor, room
        self.name, self.corners = plan.rooms[room], plan.corners
        self.ceiling = plan.ceiling
        self.low = self.corners[room, :2] / 10 + WALL_GAP
        self.high = self.corners[room, 2:] / 10 - WALL_GAP
        self.taken: list[tuple[np.ndarray, np.ndarray]] = []  # lower and upper corners
        self.types: set[str] = set()
        weights, flags = tables.rooms[self.name], tables.flags
        stand = [t for t in tables.types if t in flags["floor"] and t not in flags["carried"]]
        self.usual = [t for t in stand if weights.get(t) == 2]
        self.rare = [t for t in stand if weights.get(t) == 1]
        self.groups = [g for g in tables.groups if self.name in g.rooms]

    def furnish(self, found: list[PlacedPiece]) -> None:
        """Place the pieces typical of such a room first, then random ones."""
        most = self.rng.choice(NUM_PIECES, p=PIECE_ODDS)
        for name in TYPICAL[self.name]:
            if name not in self.types and len(self.taken) < most:
                self._place_first_fitting(self._candidates_of_type(name), found)
        for _ in range(2 * most):
            if len(self.taken) >= most:
                break
            self._place_first_fitting(self._sample_candidates(), found)

    def _candidates_of_type(self, name: str) -> list[Piece]:
        """Return the pieces by which a type can be placed, the preferred first."""
        groups = [g for g in self.groups if any(m.type == name for m in g.members)]
        ways = []
        single_too = name in self.usual or name in self.rare or name == "Sink"
        if groups and (not single_too or self.rng.random() < GROUP_ODDS):
            order = self.rng.permutation(len(groups))[:2]
            ways += [sample_group(self.rng, groups[i]) for i in order]
        if single_too:
            ways.append(sample_piece(self.rng, self.tables, name))
        return ways

    def _sample_candidates(self) -> list[Piece]:
        """Return another random group or piece that fits the room."""
        fits = lambda t: t not in self.types or t in self.tables.flags["many"]
        if self.rng.random() < GROUP_ODDS:
            groups = [g for g in self.groups if all(fits(m.type) for m in g.members)]
            if groups:
                return [sample_group(self.rng, groups[self.rng.integers(len(groups))])]
        kinds = self.rare if self.rng.random() < RARE_ODDS else self.usual
        kinds = [t for t in kinds if fits(t)]
        if not kinds:
            return []
        return [sample_piece(self.rng, self.tables, kinds[self.rng.integers(len(kinds))])]

    def _place_first_fitting(self, ways: list[Piece], found: list[PlacedPiece]) -> None:
        """Place the first of the candidates that fits at one of a few random positions."""
        for piece in ways:
            for _ in range(TRIES):
                if self._try_to_place(piece, found):
                    return

    def _try_to_place(self, piece: Piece, found: list[PlacedPiece]) -> bool:
        """Try to place the piece at a random position; return whether it succeeded."""
        quarter = int(self.rng.integers(4))
        half = piece.extent if quarter % 2 == 0 else piece.extent[::-1]
        low, high = self.low + half, self.high - half
        if (low > high).any() or piece.height > self.ceiling - 0.1:
            return False
        at, spot = self._sample_spot(piece.where, quarter, low, high)
        corners = (at - half, at + half)
        apart = _reserved_rectangle(corners, spot, quarter)
        if any(_has_overlap(apart, other) for other in self.taken):
            return False
        return self._place_if_navigable(piece, at, quarter, corners, apart, found)

    def _sample_spot(
        self, where: tuple[str, ...], quarter: int, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, str]:
        """Sample a position for a piece rotated by `quarter` right angles, and its spot."""
        at = self.rng.uniform(low, high)
        spot = where[self.rng.integers(len(where))]
        axis, least = _wall_side(quarter)
        if spot != "middle":
            at[axis] = low[axis] if least else high[axis]
        if spot == "corner":
            at[1 - axis] = (low, high)[self.rng.integers(2)][1 - axis]
        return at, spot

    def _place_if_navigable(
        self,
        piece: Piece,
        at: np.ndarray,
        quarter: int,
        corners: tuple[np.ndarray, np.ndarray],
        apart: tuple[np.ndarray, np.ndarray],
        found: list[PlacedPiece],
    ) -> bool:
        """Place the piece if the room stays navigable; return whether it was placed."""
        turn = quarter * np.pi / 2
        groups = 1 + max((one.group for one in found), default=-1)
        placed = [
            _place_item(one, at, turn, self.room, groups, k) for k, one in enumerate(piece.items)
        ]
        free = self.floor.free
        for one in placed:
            for rectangle in footprints(one):  # a television may overhang its stand
                free = self.floor.block(free, rectangle)
        reached = self.floor.reachable_cells(free, self.room, self.corners[self.room])
        if reached is None or not self._is_piece_reachable(reached, corners):
            return False
        lost = self.floor.free & ~free
        if not all(self._is_room_reachable(free, lost, room) for room in range(len(self.corners))):
            return False
        self.floor.free = free
        self.taken.append(apart)
        self.types |= {one.type for one in piece.items}
        found += placed
        return True

    def _is_room_reachable(self, free: np.ndarray, lost: np.ndarray, room: int) -> bool:
        """Return whether enough of a room is reachable; a piece at a door affects two rooms."""
        x0, y0, x1, y1 = corners = self.corners[room]
        if not lost[x0:x1, y0:y1].any():
            return True
        reached = self.floor.reachable_cells(free, room, corners)
        area = np.prod(corners[2:] - corners[:2])
        return reached is not None and bool(reached.sum() >= MIN_REACHABLE * area)

    def _is_piece_reachable(
        self, reached: np.ndarray, corners: tuple[np.ndarray, np.ndarray]
    ) -> bool:
        """Return whether a reachable cell is close to the piece."""
        offset = np.maximum(self.corners[self.room, :2] - 1, 0)
        cells = (np.argwhere(reached) + offset + 0.5) * CELL
        beyond = np.maximum(np.maximum(corners[0] - cells, cells - corners[1]), 0)
        return bool((np.hypot(*beyond.T) < MAX_STAND).any())


def _wall_side(quarter: int) -> tuple[int, bool]:
    """Return the axis normal to the back after quarter turns, and whether the back is at low."""
    return (1, 0, 1, 0)[quarter], quarter in (0, 3)


def _reserved_rectangle(
    corners: tuple[np.ndarray, np.ndarray], spot: str, quarter: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rectangle of a piece and the space to leave free around it."""
    low, high = corners[0].copy(), corners[1].copy()
    if spot == "middle":
        return low - SIDE_GAP, high + SIDE_GAP
    axis, least = _wall_side(quarter)
    low[axis], high[axis] = (
        (low[axis], high[axis] + FRONT_GAP) if least else (low[axis] - FRONT_GAP, high[axis])
    )
    return low, high


def _has_overlap(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> bool:
    return bool((a[0] < b[1] - 1e-6).all() and (b[0] < a[1] - 1e-6).all())


def _place_item(
    item: Item, at: np.ndarray, turn: float, room: int, groups: int, k: int
) -> PlacedPiece:
    c, s = np.cos(turn), np.sin(turn)
    x, y, z = item.place
    place = np.array([at[0] + c * x - s * y, at[1] + s * x + c * y, z])
    parent = groups + item.parent if item.parent >= 0 else -1
    return PlacedPiece(
        item=item, room=room, place=place, yaw=item.yaw + turn, group=groups + k, parent=parent
    )


def footprints(placed: PlacedPiece) -> list[np.ndarray]:
    """Return rectangles of floor under a piece: center x, y, half width, half depth and yaw."""
    w, d, h = placed.item.size
    parts = np.array(build_parts(placed.item.type, w, d, h).parts)
    if placed.item.type != "CounterTop":
        low, high = parts[:, :2].min(0), parts[:, 3:5].max(0)
        parts = np.array([[*low, 0.0, *high, h]])
    return [
        np.array(
            [*to_house_frame(placed, (p[:2] + p[3:5]) / 2), *((p[3:5] - p[:2]) / 2), placed.yaw]
        )
        for p in parts
    ]


def to_house_frame(placed: PlacedPiece, xy: np.ndarray) -> np.ndarray:
    """Transform a point [2] from the frame of a piece into the house, m."""
    c, s = np.cos(placed.yaw), np.sin(placed.yaw)
    return placed.place[:2] + np.array([c * xy[0] - s * xy[1], s * xy[0] + c * xy[1]])
