"""Furniture in a given room: its frequencies, and free ways for the robot.

The room is 4 m by 5 m, with another room beside it; a door of 1 m is in the middle of their wall.
"""

import numpy as np
import pytest

from jaxgpu.rl.envs.rearrange import placement
from jaxgpu.rl.envs.rearrange.floor import Floor
from jaxgpu.rl.envs.rearrange.floor_plan import Plan
from jaxgpu.rl.envs.rearrange.furnishings import statistics
from jaxgpu.rl.envs.rearrange.pieces import Item, Piece

CORNERS = np.array([[0, 0, 40, 50], [40, 0, 80, 50]])
# Each wall has a center and half sizes, m.
WALLS = (
    (0.0, 2.5, 0.05, 2.5),
    (8.0, 2.5, 0.05, 2.5),
    (4.0, 0.0, 4.0, 0.05),
    (4.0, 5.0, 4.0, 0.05),
    (4.0, 1.0, 0.05, 1.0),
    (4.0, 4.0, 0.05, 1.0),
)


def house(names=("Kitchen", "LivingRoom")):
    plan = Plan(size=(80, 50), rooms=names, corners=CORNERS, sides=(), ceiling=2.7)
    floor = Floor(plan)
    for wall in WALLS:
        floor.free = floor.block(floor.free, np.array([*wall, 0.0]))
    floor.add_gate((0, 1), 4.0, 2.5)
    return plan, floor


def room(seed=0):
    return placement._Room(np.random.default_rng(seed), statistics(), *house(), 0)


def test_six_in_ten_pieces_are_groups_and_one_in_five_of_the_others_is_of_a_rare_type():
    """ProcTHOR has 0.6 and 1 - 0.8, here to four deviations of 1,000 samples.

    A plant is a group of one. No piece has a type that the room already has, unless several are
    allowed.
    """
    kitchen, weights = room(), statistics().rooms["Kitchen"]
    names = [[item.type for item in kitchen._sample_candidates()[0].items] for _ in range(1000)]
    lone = [name[0] for name in names if len(name) == 1 and name != ["HousePlant"]]
    rare = np.mean([weights[name] == 1 for name in lone])
    assert abs(len(lone) / 1000 - 0.4) < 4 * np.sqrt(0.24 / 1000)
    assert abs(rare - 0.2) < 4 * np.sqrt(0.16 / len(lone))
    kitchen.types = {"DiningTable", "Fridge", "GarbageCan", "Chair"}
    once = kitchen.types - statistics().flags["many"]
    later = {
        item.type for _ in range(300) for way in kitchen._sample_candidates() for item in way.items
    }
    assert once == {"DiningTable", "Fridge", "GarbageCan"} and not later & once
    assert {"Chair", "CounterTop"} <= later


@pytest.mark.parametrize("quarter", range(4))
def test_backs_are_at_the_wall_and_half_a_metre_is_free_in_front(quarter):
    """The front of a piece faces y before rotation; in the middle, 35 cm remain free."""
    front = np.round([-np.sin(quarter * np.pi / 2), np.cos(quarter * np.pi / 2)])
    low, high = np.array([0.4, 0.7]), np.array([3.1, 4.2])
    rectangle = lambda spot: placement._reserved_rectangle((low, high), spot, quarter)
    for spot in ("edge", "corner"):
        np.testing.assert_allclose(
            rectangle(spot), [low - 0.5 * (front < 0), high + 0.5 * (front > 0)]
        )
    np.testing.assert_allclose(rectangle("middle"), [low - 0.35, high + 0.35])
    one, ends = room(quarter), np.array([low, high])
    for spot in ("edge", "corner", "middle"):
        at = np.array([one._sample_spot((spot,), quarter, low, high)[0] for _ in range(40)])
        at_end = (at[:, None] == ends).any(1).all(0)
        back = np.abs(front) > 0
        assert (at >= low).all() and (at <= high).all()
        assert at_end.tolist() == (back & (spot == "edge") | (spot == "corner")).tolist()
        if spot != "middle":
            np.testing.assert_array_equal(at @ front, (ends @ front).min())
        if spot == "corner":
            assert len(np.unique(at, axis=0)) == 2


def may_place(one, found, x, y, width, depth):
    """Return whether a block of that size and center may stay in the room; if so, place it."""
    half = np.array([width, depth]) / 2
    block = Item(type="Fridge", size=np.array([width, depth, 1.8]), place=np.zeros(3), yaw=0.0)
    at = np.array([x, y])
    corners = (at - half, at + half)
    return one._place_if_navigable(
        Piece((block,), half, ("middle",)), at, 0, corners, corners, found
    )


def test_a_piece_stays_only_where_the_robot_can_still_come_to_it_and_through_the_room():
    """The robot's radius is 30 cm; a reachable cell must be within 70 cm of the piece."""
    for block, stays in (
        ((1.0, 1.0, 0.6, 0.6), True),
        ((2.9, 2.5, 0.6, 0.6), True),
        ((3.6, 2.5, 0.6, 0.6), False),  # before the door
        ((1.2, 2.5, 2.2, 4.8), True),  # leaves 23% of the floor
        ((1.3, 2.5, 2.4, 4.8), False),  # and 18%
    ):
        one, found = room(), []
        before = one.floor.free
        assert may_place(one, found, *block) == stays == bool(found) == bool(one.taken)
        x, y = ((np.indices(before.shape) + 0.5) * 0.1).reshape(2, -1) - np.array(block[:2])[
            :, None
        ]
        hit = (np.abs(x) < block[2] / 2 + 0.3) & (np.abs(y) < block[3] / 2 + 0.3)
        wanted = before & ~hit.reshape(before.shape) if stays else before
        np.testing.assert_array_equal(one.floor.free, wanted)
        assert one.types == ({"Fridge"} if stays else set())
    for far, stays in ((0.66, True), (0.74, False)):
        one, found = room(), []
        assert may_place(
            one, found, 2.0, 1.22, 3.9, 0.3
        )  # a bar from wall to wall: cells from 1.75 m
        assert may_place(one, found, 2.0, 1.75 - far - 0.2, 0.4, 0.4) == stays
        assert [placed.group for placed in found] == [0, 1][: 1 + stays]


def test_the_things_of_a_piece_turn_and_move_as_one():
    """Compare with products of complex numbers; an object on another has its index as parent."""
    item = Item("Book", np.ones(3), np.array([0.3, -0.2, 0.7]), yaw=0.4, parent=1)
    moved = placement._place_item(item, np.array([2.0, 1.0]), 1.1, room=3, groups=5, k=2)
    wanted = 2.0 + 1.0j + (0.3 - 0.2j) * np.exp(1.1j)
    np.testing.assert_allclose(moved.place, [wanted.real, wanted.imag, 0.7])
    np.testing.assert_allclose(moved.yaw, 1.5)
    assert (moved.room, moved.group, moved.parent) == (3, 7, 6)
    corner = wanted + (0.1 + 0.2j) * np.exp(1.5j)
    np.testing.assert_allclose(
        placement.to_house_frame(moved, (0.1, 0.2)), [corner.real, corner.imag]
    )


def test_rooms_with_all_their_furniture_are_walked_from_the_door():
    """A fifth of each room is reachable, and the robot's disc touches nothing.

    Pieces and their free areas are disjoint, and 10 cm or more from the center lines of walls.
    """
    gaps = []
    for seed in range(3):
        plan, floor = house()
        found, rng = [], np.random.default_rng(seed)
        rooms = [placement._Room(rng, statistics(), plan, floor, i) for i in (0, 1)]
        for one, known in zip(rooms, ({"CounterTop", "Fridge"}, {"DiningTable", "Sofa"})):
            one.furnish(found)
            assert 0 < len(one.taken) < 8 and one.types & known
            low, high = np.array(one.taken).transpose(1, 0, 2)
            both = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
            np.testing.assert_array_equal((both > 1e-5).all(-1), np.eye(len(low), dtype=bool))
        cells = (np.argwhere(floor.free) + 0.5) * 0.1
        for i, corners in enumerate(CORNERS):
            assert floor.reachable_cells(floor.free, i, corners).sum() >= 0.2 * 40 * 50
        for one in found:
            low, high = CORNERS[one.room].reshape(2, 2) / 10
            c, s = np.cos(one.yaw), np.sin(one.yaw)
            size = np.abs([[c, s], [s, c]]) @ one.item.size[:2] / 2
            gaps += [one.place[:2] - size - low, high - one.place[:2] - size]
            for x, y, width, depth, yaw in placement.footprints(one):
                c, s = np.cos(yaw), np.sin(yaw)
                local = (cells - (x, y)) @ np.array([[c, -s], [s, c]])
                beyond = np.maximum(np.abs(local) - (width, depth), 0)
                assert np.hypot(*beyond.T).min() > 0.3 - 1e-9
    np.testing.assert_allclose(np.min(gaps), 0.1)
