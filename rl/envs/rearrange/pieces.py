"""Units of placement: one piece of furniture, or a group such as a table with its chairs."""

from dataclasses import dataclass, replace

import numpy as np

from .furnishings import Group, Statistics
from .templates import build_parts


@dataclass(frozen=True)
class Item:
    """Object in the frame of its piece, whose center is the origin and whose front is +y."""

    type: str  # as "DiningTable"
    size: np.ndarray  # [3] width, depth, height, m
    place: np.ndarray  # [3] center of its base, m
    yaw: float  # rad
    parent: int = -1  # index of the object on which it stands; -1: on the floor


@dataclass(frozen=True)
class Piece:
    """Objects that are placed as a unit."""

    items: tuple[Item, ...]
    extent: np.ndarray  # [2] half width and half depth, m
    where: tuple[str, ...]  # some of "corner", "edge" and "middle"

    @property
    def height(self) -> float:
        """Height of its highest object, m."""
        return max(one.place[2] + one.size[2] for one in self.items)


def sample_piece(rng: np.random.Generator, tables: Statistics, name: str) -> Piece:
    """Return a piece of furniture of this type with a size sampled from the published ones."""
    size = tables.sizes[name][rng.integers(len(tables.sizes[name]))]
    where = tuple(spot for spot in ("corner", "edge", "middle") if name in tables.flags[spot])
    items = (Item(type=name, size=size, place=np.zeros(3), yaw=0.0),)
    return Piece(items, size[:2] / 2, where or ("edge",))


def sample_group(rng: np.random.Generator, group: Group) -> Piece:
    """Return a group with sampled sizes and rotations."""
    chosen: dict[str, np.ndarray] = {}
    items: list[Item] = []
    for member in group.members:
        if member.like not in chosen:
            chosen[member.like] = member.sizes[rng.integers(len(member.sizes))]
        size = chosen[member.like]
        yaw = member.turn + rng.uniform(-1, 1) * member.spread
        place = np.zeros(3)
        if member.parent >= 0:
            parent = items[member.parent]
            around, own = _half_extent(parent.size, parent.yaw), _half_extent(size, yaw)
            row, column = divmod(member.anchor, 3)
            at = around * np.array([1 - column, row - 1])
            side = np.array([member.align[0] - 1, member.align[1] - 1])
            place[:2] = parent.place[:2] + at + np.array(member.offset) + own * side
            place[2] = _support_height(parent) if member.above else 0.0
        on = member.parent if member.above else -1
        items.append(Item(type=member.type, size=size, place=place, yaw=yaw, parent=on))
    return _center_piece(items, group.where)


def _half_extent(size: np.ndarray, yaw: float) -> np.ndarray:
    """Return half width and half depth of the bounding rectangle of a rotated object."""
    c, s = abs(np.cos(yaw)), abs(np.sin(yaw))
    return np.array([c * size[0] + s * size[1], s * size[0] + c * size[1]]) / 2


def _support_height(item: Item) -> float:
    """Return the height at which an item supports others."""
    made = build_parts(item.type, *item.size)
    return max([top[4] for top in made.tops] or [part[5] for part in made.parts])


def _center_piece(items: list[Item], where: tuple[str, ...]) -> Piece:
    """Return the piece with the center of its bounding rectangle at the origin."""
    halves = [_half_extent(one.size, one.yaw) for one in items]
    low = np.min([one.place[:2] - half for one, half in zip(items, halves)], 0)
    high = np.max([one.place[:2] + half for one, half in zip(items, halves)], 0)
    shift = np.append((low + high) / 2, 0.0)
    moved = tuple(replace(one, place=one.place - shift) for one in items)
    return Piece(moved, (high - low) / 2, where)
