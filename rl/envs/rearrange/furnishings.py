"""Household statistics: sizes of objects, where they stand, and what lies on them.

They are distilled from the tables of procthor 0.0.1.dev2 (Apache-2.0; Deitke et al. 2022,
doi:10.48550/arXiv.2206.06994) by docs/make/furnishings.py. Sizes are width, depth and height in
metres; the front of a piece faces its own +y, and its back stands at a wall.
"""

import functools
import json
from dataclasses import dataclass
from importlib import resources

import numpy as np


@dataclass(frozen=True)
class Member:
    """Object in a group, and its position relative to another of the same group."""

    type: str  # as "Chair"
    like: str  # members with the same name have the same size
    sizes: np.ndarray  # [K, 3] possible sizes, m
    parent: int  # -1 for the first
    anchor: int  # 0 ... 8: position on the parent's rectangle, rows from the back, right to left
    above: bool  # on the parent, not next to it
    align: tuple[int, int]  # which side of it is at the anchor: 0, 1 (center), 2
    offset: tuple[float, float]  # m
    turn: float  # rad
    spread: float  # rad, maximum random rotation added to `turn`


@dataclass(frozen=True)
class Group:
    """Objects that stand together, such as a table with its chairs."""

    name: str  # name of the published group
    rooms: tuple[str, ...]  # types of rooms in which it may stand
    where: tuple[str, ...]  # "corner", "edge", "middle"
    members: tuple[Member, ...]  # the first is the one around which the others stand


@dataclass(frozen=True)
class Statistics:
    """All tables; types have names such as "DiningTable"."""

    types: tuple[str, ...]  # in the order of their numbers
    sizes: dict[str, np.ndarray]  # [K, 3] m
    rooms: dict[str, dict[str, int]]  # per room type: 2 typical, 1 rare
    flags: dict[str, frozenset[str]]  # corner, edge, middle, floor, many, carried
    odds: dict[str, dict[str, float]]  # per receptacle: probability of each object on it
    holes: dict[str, np.ndarray]  # [K, 2] width and height of door, double and window, m
    groups: tuple[Group, ...]  # objects that stand together
    plans: dict[str, tuple[float, list]]  # weight, and a tree of area shares

    def index(self, name: str) -> int:
        """Return the number of a type in arrays."""
        return _type_indices(self.types)[name]


@functools.cache
def statistics() -> Statistics:
    """Return the tables that come with the package, read once.

    >>> tables = statistics()
    >>> len(tables.types), round(tables.odds["Sofa"]["Pillow"], 3)
    (109, 0.645)
    >>> tables.sizes["Apple"].mean(0).round(1).tolist()
    [0.1, 0.1, 0.1]
    """
    base = resources.files("jaxgpu.rl.envs.rearrange")
    held = json.loads(base.joinpath("data/furnishings.json").read_text())
    metres = lambda sizes: np.asarray(sizes, float) / 1000
    return Statistics(
        types=tuple(held["sizes"]),
        sizes={name: metres(sizes) for name, sizes in held["sizes"].items()},
        rooms=held["rooms"],
        flags={name: frozenset(kinds) for name, kinds in held["flags"].items()},
        odds=held["odds"],
        holes={name: metres(sizes) for name, sizes in held["holes"].items()},
        groups=tuple(_parse_group(one) for one in held["groups"]),
        plans={one["name"]: (one["weight"], one["rooms"]) for one in held["plans"]},
    )


def object_types() -> tuple[str, ...]:
    """Return the names of the object types, in the order of the numbers in a `House`.

    >>> object_types()[:3]
    ('AlarmClock', 'AluminumFoil', 'Apple')
    """
    return statistics().types


@functools.cache
def _type_indices(types: tuple[str, ...]) -> dict[str, int]:
    return {name: i for i, name in enumerate(types)}


def _parse_group(held: dict) -> Group:
    return Group(
        name=held["name"],
        rooms=tuple(held["rooms"]),
        where=tuple(held["where"]),
        members=tuple(_parse_member(one) for one in held["members"]),
    )


def _parse_member(held: dict) -> Member:
    """Return a member; x and rotations are mirrored because the source's axes are left-handed."""
    x, y = held.get("offset", (0, 0))
    across, along = held.get("align", (1, 1))
    return Member(
        type=held["type"],
        like=held["like"],
        sizes=np.asarray(held["sizes"], float) / 1000,
        parent=held.get("parent", -1),
        anchor=held.get("anchor", 4),
        above=held.get("above", False),
        align=(across, along),
        offset=(-x / 1000, y / 1000),
        turn=-np.radians(held["turn"]),
        spread=np.radians(held["spread"]),
    )
