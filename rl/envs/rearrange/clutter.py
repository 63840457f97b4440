"""Small objects on the furniture, by the published probabilities of what is on what.

An object fits on a surface where the disc around it overlaps no other disc. The first of a type is
accepted with its probability plus biases of the receptacle, the object and the house. More follow
with the plain probability, at most three in total.
"""

from dataclasses import dataclass, field

import numpy as np

from .furnishings import Statistics
from .placement import PlacedPiece, to_house_frame
from .templates import build_parts

MAX_HEIGHT = 1.6  # m, maximum height of a surface that a robot can reach
MAX_ALIKE, TRIES, DISC_GAP = 3, 8, 0.01  # per receptacle; positions tried; m between discs
BIAS = 0.2  # bias of a receptacle, except for
TYPE_BIASES = {"Chair": 0.0, "ArmChair": 0.0, "ShelvingUnit": 0.4}
OBJECT_BIASES = {
    "BaseballBat": 0.1,
    "BasketBall": 0.2,
    "Bowl": 0.05,
    "HousePlant": 0.25,
    "Pan": 0.1,
    "Pot": 0.1,
    "SprayBottle": 0.2,
}


@dataclass
class Surface:
    """Level rectangle that supports objects."""

    of: PlacedPiece
    middle: np.ndarray  # [2] in the frame of the furniture, m
    half: np.ndarray  # [2] m
    height: float  # m above the floor
    clear: float  # m of free height
    discs: list[tuple[np.ndarray, float]] = field(default_factory=list)  # in its own frame


@dataclass(frozen=True)
class SmallObject:
    """Small object to carry."""

    type: str  # as "Mug"
    size: np.ndarray  # [3] m
    place: np.ndarray  # [3] center of its base, m
    yaw: float  # about z, rad
    room: int  # index of the room
    surface: int  # index of the supporting surface


def find_surfaces(placed: list[PlacedPiece]) -> list[Surface]:
    """Return all surfaces of the furniture within reach, with the discs of pieces on them."""
    found = []
    for one in placed:
        for top in build_parts(one.item.type, *one.item.size).tops:
            height = one.place[2] + top[4]
            half = np.array([top[2] - top[0], top[3] - top[1]]) / 2
            if height < MAX_HEIGHT and half.min() > 0.05:
                middle = np.array([top[0] + top[2], top[1] + top[3]]) / 2
                row = {"of": one, "middle": middle, "half": half}
                found.append(Surface(**row, height=height, clear=top[5]))
    for one in placed:
        for surface in found:
            if one.parent == surface.of.group:
                rest = _to_furniture_frame(surface.of, one.place[:2]) - surface.middle
                surface.discs.append((rest, float(np.hypot(*one.item.size[:2]) / 2)))
    return found


def scatter_objects(
    rng: np.random.Generator, tables: Statistics, rooms: tuple[str, ...], tops: list[Surface]
) -> list[SmallObject]:
    """Sample small objects on the surfaces; each surface records the discs in use."""
    bias = 0.4 * rng.beta(3.5, 1.9) - 0.3
    found: list[SmallObject] = []
    for group in sorted({top.of.group for top in tops}):
        places = [k for k, top in enumerate(tops) if top.of.group == group]
        name, room = tops[places[0]].of.item.type, tops[places[0]].of.room
        weights = tables.rooms[rooms[room]]
        for child, odds in tables.odds.get(name, {}).items():
            if child not in tables.flags["carried"] or not weights.get(child):
                continue
            chance = odds + TYPE_BIASES.get(name, BIAS) + OBJECT_BIASES.get(child, 0.0) + bias
            count = 0
            while count < MAX_ALIKE and rng.random() <= (chance if count == 0 else odds):
                k = places[rng.integers(len(places))]
                sizes = tables.sizes[child]
                _place_object(rng, child, sizes[rng.integers(len(sizes))], tops[k], k, found)
                count += 1
    return found


def _place_object(
    rng: np.random.Generator,
    name: str,
    size: np.ndarray,
    top: Surface,
    index: int,
    found: list[SmallObject],
) -> None:
    """Place the object on the surface if it finds a free position."""
    radius = float(np.hypot(size[0], size[1]) / 2)
    room = top.half - radius - DISC_GAP
    if (room < 0).any() or size[2] > top.clear - DISC_GAP:
        return
    for _ in range(TRIES):
        at = rng.uniform(-room, room)
        if all(np.hypot(*(at - x)) > radius + r + DISC_GAP for x, r in top.discs):
            top.discs.append((at, radius))
            xy = to_house_frame(top.of, top.middle + at)
            yaw = top.of.yaw + rng.uniform(0, 2 * np.pi)
            found.append(
                SmallObject(
                    type=name,
                    size=size,
                    place=np.array([*xy, top.height]),
                    yaw=yaw,
                    room=top.of.room,
                    surface=index,
                )
            )
            return


def _to_furniture_frame(placed: PlacedPiece, xy: np.ndarray) -> np.ndarray:
    """Transform a point of the house into the frame of a piece, m."""
    c, s = np.cos(placed.yaw), np.sin(placed.yaw)
    x, y = xy - placed.place[:2]
    return np.array([c * x + s * y, c * y - s * x])
