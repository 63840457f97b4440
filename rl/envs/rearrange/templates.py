"""Parts of furniture: top and legs of a table, or seat, back and arms of a sofa.

The source has one box per asset; the parts inside it are our design. A part is x0, y0, z0, x1, y1,
z1 in metres, in the frame of the piece: its center on the floor, its front towards +y. A top is a
surface that supports objects: x0, y0, x1, y1, z, and the free height above it.
"""

from collections.abc import Callable
from dataclasses import dataclass

Part = tuple[float, float, float, float, float, float]
Top = tuple[float, float, float, float, float, float]

FREE_HEIGHT = 2.0  # m of free height if nothing is above
LEG, BOARD, PANEL = 0.05, 0.04, 0.02  # m thick
COUNTER = 0.65  # m deep; a counter that is wider both ways has two arms
SHELF = 0.38  # m, approximate distance between boards


@dataclass(frozen=True)
class FurnitureParts:
    """Parts of a piece of furniture of given size."""

    parts: tuple[Part, ...]  # boxes, m
    tops: tuple[Top, ...] = ()  # surfaces that support objects


def build_parts(name: str, width: float, depth: float, height: float) -> FurnitureParts:
    """Return the parts and tops of a type of furniture with a box of this size, m.

    >>> table = build_parts("DiningTable", 1.5, 1.0, 0.78)
    >>> len(table.parts), table.tops[0][4]
    (5, 0.78)
    """
    return _KINDS.get(name, _solid)(width / 2, depth / 2, height)


def _block(w: float, d: float, h: float) -> Part:
    return (-w, -d, 0.0, w, d, h)


def _solid(w: float, d: float, h: float) -> FurnitureParts:
    return FurnitureParts((_block(w, d, h),))


def _chest(w: float, d: float, h: float) -> FurnitureParts:
    return FurnitureParts((_block(w, d, h),), ((-w, -d, w, d, h, FREE_HEIGHT),))


def _legs(w: float, d: float, h: float, thick: float) -> tuple[Part, ...]:
    """Return four legs under a rectangle."""
    edges = lambda half: ((-half, -half + thick), (half - thick, half))
    return tuple((x0, y0, 0.0, x1, y1, h) for x0, x1 in edges(w) for y0, y1 in edges(d))


def _table(w: float, d: float, h: float) -> FurnitureParts:
    top = (-w, -d, h - BOARD, w, d, h)
    return FurnitureParts((top, *_legs(w, d, h - BOARD, LEG)), ((-w, -d, w, d, h, FREE_HEIGHT),))


def _stool(w: float, d: float, h: float) -> FurnitureParts:
    return _table(w, d, h)


def _chair(w: float, d: float, h: float) -> FurnitureParts:
    seat = min(0.47, 0.55 * h)
    back = (-w, -d, seat, w, -d + BOARD, h)
    parts = ((-w, -d, seat - BOARD, w, d, seat), back, *_legs(w, d, seat - BOARD, 0.04))
    return FurnitureParts(parts, ((-w, -d + BOARD, w, d, seat, FREE_HEIGHT),))


def _sofa(w: float, d: float, h: float) -> FurnitureParts:
    seat, back, arm = 0.45 * h, 0.4 * d, min(0.16, 0.4 * w)
    parts = (
        _block(w, d, seat),
        (-w, -d, seat, w, -d + back, h),
        (-w, -d + back, seat, -w + arm, d, 0.65 * h),
        (w - arm, -d + back, seat, w, d, 0.65 * h),
    )
    return FurnitureParts(parts, ((-w + arm, -d + back, w - arm, d, seat, FREE_HEIGHT),))


def _bed(w: float, d: float, h: float) -> FurnitureParts:
    mattress = min(0.55, 0.6 * h)
    board = (-w, -d, mattress, w, -d + 0.06, h)
    return FurnitureParts(
        (_block(w, d, mattress), board), ((-w, -d + 0.06, w, d, mattress, FREE_HEIGHT),)
    )


def _shelf(w: float, d: float, h: float) -> FurnitureParts:
    """Return two sides, a back, and boards about `SHELF` apart."""
    gaps = max(1, round((h - PANEL) / SHELF))
    step = (h - PANEL) / gaps
    boards = [(-w, -d, k * step, w, d, k * step + PANEL) for k in range(gaps + 1)]
    walls = (
        (-w, -d, 0.0, w, -d + PANEL, h),
        (-w, -d, 0.0, -w + PANEL, d, h),
        (w - PANEL, -d, 0.0, w, d, h),
    )
    inner = (-w + PANEL, -d + PANEL, w - PANEL, d)
    tops = [(*inner, b[5], step - PANEL if k < gaps else FREE_HEIGHT) for k, b in enumerate(boards)]
    return FurnitureParts((*boards, *walls), tuple(tops))


def _counter(w: float, d: float, h: float) -> FurnitureParts:
    """Return a straight counter, or one with two arms around a corner if wide both ways."""
    if min(2 * w, 2 * d) < COUNTER + 0.5:
        return _chest(w, d, h)
    back = (-w, -d, 0.0, w, -d + COUNTER, h)
    side = (-w, -d + COUNTER, 0.0, -w + COUNTER, d, h)
    tops = tuple((p[0], p[1], p[3], p[4], h, FREE_HEIGHT) for p in (back, side))
    return FurnitureParts((back, side), tops)


def _toilet(w: float, d: float, h: float) -> FurnitureParts:
    tank = (-w, -d, 0.0, w, -d + 0.3 * d, min(h, 0.85))
    bowl = (-0.75 * w, -d + 0.3 * d, 0.0, 0.75 * w, d, min(0.42, h))
    return FurnitureParts((tank, bowl), ((-w, -d, w, -d + 0.3 * d, tank[5], FREE_HEIGHT),))


def _lamp(w: float, d: float, h: float) -> FurnitureParts:
    foot = (-0.5 * w, -0.5 * d, 0.0, 0.5 * w, 0.5 * d, 0.04)
    pole = (-0.02, -0.02, 0.04, 0.02, 0.02, 0.78 * h)
    return FurnitureParts((foot, pole, (-w, -d, 0.78 * h, w, d, h)))


def _television(w: float, d: float, h: float) -> FurnitureParts:
    foot = (-0.3 * w, -d, 0.0, 0.3 * w, d, 0.05)
    return FurnitureParts((foot, (-w, -0.03, 0.05, w, 0.03, h)))


def _basin(w: float, d: float, h: float) -> FurnitureParts:
    """Return a bathroom sink on a foot; the box of the source is that of the basin only."""
    foot = (-0.4 * w, -d, 0.0, 0.4 * w, 0.2 * d, max(0.85 - h, 0.3))
    return FurnitureParts((foot, (-w, -d, foot[5], w, d, foot[5] + min(h, 0.2))))


_KINDS: dict[str, Callable[[float, float, float], FurnitureParts]] = {
    "ArmChair": _sofa,
    "Bed": _bed,
    "Chair": _chair,
    "CoffeeTable": _table,
    "CounterTop": _counter,
    "Desk": _table,
    "DiningTable": _table,
    "Dresser": _chest,
    "FloorLamp": _lamp,
    "Ottoman": _chest,
    "ShelvingUnit": _shelf,
    "SideTable": _table,
    "Sink": _basin,
    "Sofa": _sofa,
    "Stool": _stool,
    "TVStand": _chest,
    "Television": _television,
    "Toilet": _toilet,
}
