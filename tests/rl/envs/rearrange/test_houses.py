"""Houses: they can be crossed, furniture can be reached, and objects are where they belong."""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import ndimage

from jaxgpu import show
from jaxgpu.rl.envs.rearrange import BoxType, furnishings, houses
from jaxgpu.rl.envs.rearrange.house import ROBOT_RADIUS, ROOMS

pytestmark = pytest.mark.slow  # houses are drawn for seconds

SEEDS = 100


@pytest.fixture(scope="module")
def all_houses():
    """Return one house per seed, as NumPy arrays."""
    stacked = jax.tree.map(np.asarray, houses.generate_many(range(SEEDS)))
    return [jax.tree.map(lambda a, i=i: a[i], stacked) for i in range(SEEDS)]


def gaps(points, centre, half, yaw):
    """Return distances [P, N] in the plane from points to rotated rectangles; 0 inside."""
    d = points[:, None] - centre[None, :, :2]
    c, s = np.cos(yaw), np.sin(yaw)
    local = np.stack([c * d[..., 0] + s * d[..., 1], c * d[..., 1] - s * d[..., 0]], -1)
    return np.linalg.norm(np.maximum(np.abs(local) - half[None, :, :2], 0), axis=-1)


def solid_rows(house):
    """Return the rows of boxes that a robot of 1.1 m could touch."""
    solid = (house.kind >= BoxType.WALL) & (house.centre[:, 2] - house.half[:, 2] < 1.1)
    return np.flatnonzero(solid)


def test_the_robot_keeps_its_radius_from_everything_wherever_it_may_stand(all_houses):
    for house in all_houses[:15]:
        cells = (np.argwhere(house.nav) + 0.5) * 0.1
        rows = solid_rows(house)
        gap = gaps(cells, house.centre[rows], house.half[rows], house.yaw[rows])
        assert gap.min() > ROBOT_RADIUS - 1e-5
        # Half a step towards a free neighbor, the robot must also fit.
        for axis in (0, 1):
            beside = np.roll(house.nav, -1, axis) & house.nav
            middle = (np.argwhere(beside) + 0.5) * 0.1 + 0.05 * np.eye(2)[axis]
            gap = gaps(middle, house.centre[rows], house.half[rows], house.yaw[rows])
            assert gap.min() > ROBOT_RADIUS - 1e-5


def test_all_rooms_are_one_floor_and_every_door_is_passed(all_houses):
    for house in all_houses:
        assert ndimage.label(house.nav)[1] == 1
        rooms = house.rooms[house.room_type >= 0]
        for room in rooms:
            x0, y0, x1, y1 = np.round(room * 10).astype(int)
            share = house.nav[x0:x1, y0:y1].sum() / ((x1 - x0) * (y1 - y0))
            assert share > 0.15  # a fifth, of which a neighbour's wide door may take its part
        for axis, at, low, high, top in house.doors[house.doors[:, 0] >= 0]:
            assert high - low > 0.9 and top > 1.9
            cells = house.nav if axis == 0 else house.nav.T
            beside = round(at * 10)
            span = slice(round(low * 10) + 1, round(high * 10))
            assert np.any(cells[beside - 1, span] & cells[beside, span])


def test_doors_join_all_rooms(all_houses):
    for house in all_houses:
        rooms = house.rooms[house.room_type >= 0]
        reached = {0}
        doors = house.doors[house.doors[:, 0] >= 0]
        for _ in rooms:
            for axis, at, low, high, _ in doors:
                point = np.zeros(2)
                point[int(axis)], point[1 - int(axis)] = at, (low + high) / 2
                inside = (point > rooms[:, :2] - 0.01) & (point < rooms[:, 2:] + 0.01)
                pair = set(np.flatnonzero(inside.all(1)).tolist())
                assert len(pair) == 2
                reached |= pair if pair & reached else set()
        assert len(reached) == len(rooms)


def test_the_same_seed_is_the_same_house_to_the_bit(all_houses):
    for seed in (0, 7, 42):
        again = houses.generate(seed)
        same = jax.tree.map(lambda a, b: bool(np.array_equal(a, b)), again, all_houses[seed])
        assert all(jax.tree.leaves(same))
    assert not np.array_equal(all_houses[0].centre, all_houses[1].centre)


def test_furniture_of_two_pieces_does_not_overlap(all_houses):
    for house in all_houses[:30]:
        lone = np.flatnonzero(house.kind == BoxType.FURNITURE)
        for k in lone:
            # Corners and center of each part are in no part of a piece of another group.
            signs = 0.98 * np.array([(0, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)])
            x, y = (signs * house.half[k, :2]).T
            c, s = np.cos(house.yaw[k]), np.sin(house.yaw[k])
            points = house.centre[k, :2] + np.stack([c * x - s * y, s * x + c * y], 1)
            others = lone[house.room[lone] != house.room[k]]
            if len(others):
                gap = gaps(points, house.centre[others], house.half[others], house.yaw[others])
                assert gap.min() > 0.05  # a wall is between rooms
        walls = np.flatnonzero((house.kind == BoxType.WALL) | (house.kind == BoxType.PANE))
        for k in lone:
            gap = gaps(house.centre[k, None, :2], house.centre[walls], house.half[walls], 0.0)
            assert gap.min() > 0.0


def test_small_things_lie_on_their_surface_and_apart(all_houses):
    kinds = furnishings.object_types()
    tables = furnishings.statistics()
    for house in all_houses:
        things, tops = house.objects, house.surfaces
        n = int(things.count)
        assert np.all(things.type[:n] >= 0) and np.all(things.type[n:] == -1)
        for i in range(n):
            top = things.surface[i]
            assert things.centre[i, 2] - things.half[i, 2] == pytest.approx(
                tops.centre[top, 2], abs=1e-5
            )
            turn = np.array([tops.yaw[top]])
            radius = np.hypot(*things.half[i, :2])
            middle = things.centre[i, None, :2]
            room = gaps(middle, tops.centre[top, None], tops.half[top, None] - radius, turn)
            assert room[0, 0] < 1e-5
            assert kinds[things.type[i]] in tables.odds[kinds[tops.type[top]]]
        same = things.surface[:n, None] == things.surface[None, :n]
        apart = np.linalg.norm(things.centre[:n, None, :2] - things.centre[None, :n, :2], axis=-1)
        radius = np.hypot(*things.half[:n, :2].T)
        close = apart < radius[:, None] + radius[None] - 1e-5
        assert not np.any(same & close & ~np.eye(n, dtype=bool))


def test_nearly_all_surfaces_are_within_an_arms_reach(all_houses):
    gap = np.concatenate([h.surfaces.gap[: int(h.surfaces.count)] for h in all_houses])
    assert np.all(
        gap > ROBOT_RADIUS - 0.08
    )  # a top may stand out over its legs by less than a cell
    assert np.mean(gap < 0.9) > 0.93


def test_rooms_have_what_they_are_known_by(all_houses):
    kinds = np.array(furnishings.object_types())
    wanted = {"Bedroom": "Bed", "Bathroom": "Toilet", "Kitchen": "Fridge", "LivingRoom": "Sofa"}
    seen = {room: [] for room in ROOMS}
    for house in all_houses:
        for i, room in enumerate(house.room_type[house.room_type >= 0]):
            here = (house.room == i) & (house.type >= 0)
            seen[ROOMS[room]].append(wanted[ROOMS[room]] in kinds[house.type[here]])
    assert all(np.mean(found) > 0.5 for found in seen.values())
    assert np.mean(seen["Bedroom"]) > 0.9


def test_small_things_appear_as_often_as_published(all_houses):
    """Apples on dining tables: odds, bias of a receptacle, and mean bias of a house."""
    tables, kinds = furnishings.statistics(), furnishings.object_types()
    odds = tables.odds["DiningTable"]["Plate"] + 0.2 + 0.4 * 3.5 / 5.4 - 0.3
    with_, tops = 0, 0
    for house in all_houses:
        for k in np.flatnonzero(house.surfaces.type == kinds.index("DiningTable")):
            tops += 1
            on = house.objects.type[house.objects.surface == k]
            with_ += bool(np.any(on == kinds.index("Plate")))
    deviation = np.sqrt(odds * (1 - odds) / tops)
    assert tops > 40
    # Fewer than sampled may fit on a table; a house has one bias, hence three deviations.
    assert odds - 0.15 - 3 * deviation < with_ / tops < odds + 3 * deviation


def test_rows_that_do_not_suffice_are_told_with_the_number_that_does():
    with pytest.raises(ValueError, match=r"rows=20 and the house has \d+; .* give rows=\d+"):
        houses.generate(1, rows=20)
    with pytest.raises(ValueError, match=r"objects=2 and the house has"):
        houses.generate(1, objects=2)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="seed=-1"):
        houses.generate(-1)
    with pytest.raises(ValueError, match="plan='castle'"):
        houses.generate(0, plan="castle")
    with pytest.raises(TypeError, match="range\\(100\\)"):
        houses.generate_many(7)
    with pytest.raises(ValueError, match="empty"):
        houses.generate_many([])


def test_a_plan_by_name_has_its_rooms():
    house = houses.generate(11, plan="7-room-3-bed")
    have = [ROOMS[k] for k in np.asarray(house.room_type) if k >= 0]
    assert sorted(have) == sorted(houses.plans()["7-room-3-bed"])


def test_a_house_is_shown_as_triangles():
    house = houses.generate(2)
    view = show(house)
    boxes = int(house.count) + int(house.objects.count) - 1  # without the ceiling
    assert sum(len(one.faces) for one in view.surfaces) == 12 * boxes
    assert view.page().startswith("<!doctype html>")
    corners = np.concatenate([one.x[0] for one in view.surfaces])
    assert corners[:, 2].max() <= float(house.ceiling) + 1e-5


def test_the_table_is_small_and_names_its_source():
    file = Path(furnishings.__file__).parent / "data/furnishings.json"
    assert file.stat().st_size < 150_000
    assert "procthor 0.0.1.dev2, Apache-2.0" in json.loads(file.read_text())["source"]


def test_the_script_distils_a_group_and_the_plans():
    sys.path.insert(0, str(Path(__file__).parents[4] / "docs/make"))
    try:
        import furnishings as script
    finally:
        sys.path.pop(0)
    source = """
RoomSpec(room_spec_id="x", sampling_weight=2, spec=[
    MetaRoom(ratio=2, children=[LeafRoom(room_id=2, ratio=3, room_type="Kitchen")]),
    LeafRoom(room_id=3, ratio=1, room_type="Bedroom")])
"""
    tree = [[2, [[3, "Kitchen"]]], [1, "Bedroom"]]
    assert script.plans(source) == [{"name": "x", "weight": 2, "rooms": tree}]
    box = lambda x, y, z: {"x": x, "y": y, "z": z}
    held = {"Mug": [{"boundingBox": box(0.1, 0.2, 0.3), "split": "test"}]}
    assert script.sizes(held) == {"Mug": [(100, 300, 200)]}
