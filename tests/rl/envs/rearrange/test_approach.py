"""Paths of a hand to an object through free space: around edges, downhill, straight at the end."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from room_boxes import distance
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from jaxgpu.rl.envs.rearrange import geodesic, hand_paths

# A board of 80 by 60 by 3 cm is at a height of 70 cm, with a small object in the middle.
BOARD = [0.0, 0.0, 0.685, 0.4, 0.3, 0.015, 1.0, 0.0]
THING = np.array([0.0, 0.0, 0.73, 0.02, 0.02, 0.03, 1.0, 0.0], np.float32)
NOTHING = [0.0, 0.0, -1e3, 0.0, 0.0, 0.0, 1.0, 0.0]
OPEN = jnp.asarray([NOTHING], jnp.float32)
TABLE = jnp.asarray([BOARD, NOTHING], jnp.float32)


@jax.jit
def _evaluate(field, places):
    def evaluate_at(x):
        off = x - THING[:3]
        over = off - jnp.clip(off, -THING[3:6], THING[3:6])
        return hand_paths.path_length(field[None], jnp.int32(0), off, over)

    return jax.vmap(evaluate_at)(places)


def evaluate(field, places):
    """Return the distance and its gradient at positions [N, 3]."""
    return jax.device_get(_evaluate(jnp.asarray(field), jnp.asarray(places, jnp.float32)))


def run_dijkstra(free, start, width):
    """Return shortest distances on a graph with an edge per neighbor, in NumPy and SciPy."""
    number = np.arange(free.size).reshape(free.shape)
    rows, columns, lengths = [], [], []
    for at in itertools.product(*map(range, free.shape)):
        for step in itertools.product((-1, 0, 1), repeat=free.ndim):
            to = tuple(np.add(at, step))
            if not any(step) or min(to) < 0 or any(np.greater_equal(to, free.shape)):
                continue
            corners = itertools.product(*({a, b} for a, b in zip(at, to)))
            if all(free[corner] for corner in corners):
                rows.append(number[at])
                columns.append(number[to])
                lengths.append(width * np.linalg.norm(step))
    # All paths start from one additional node.
    (begun,) = np.nonzero(np.isfinite(start.ravel()))
    size = free.size + 1
    rows, columns = [*rows, *len(begun) * [free.size]], [*columns, *begun]
    graph = coo_array(([*lengths, *start.ravel()[begun]], (rows, columns)), shape=(size, size))
    return dijkstra(graph.tocsr(), indices=free.size)[:-1].reshape(free.shape)


@pytest.mark.parametrize("seed", range(3))
def test_ways_through_space_are_those_of_dijkstra(seed):
    rng = np.random.default_rng(seed)
    free = rng.random((7, 8, 9)) < 0.75
    start = np.full(free.shape, np.inf)
    start[tuple(rng.integers((7, 8, 9), size=(3, 3)).T)] = rng.uniform(0.1, 1, 3)
    got = np.asarray(
        geodesic.shortest_paths(jnp.asarray(free), jnp.asarray(start, jnp.float32), 0.08)
    )
    true = run_dijkstra(free, start, 0.08)
    there = np.isfinite(true)
    np.testing.assert_array_equal(np.isfinite(got), there)
    assert 100 < there.sum() < free.size
    np.testing.assert_allclose(got[there], true[there], rtol=1e-5)


def test_where_nothing_is_in_the_way_it_is_nearly_straight():
    """Paths along 26 directions are at most a ninth longer; cells are a few centimetres wide."""
    places = np.random.default_rng(0).uniform(-0.6, 0.6, (200, 3)) + THING[:3]
    places = places[places[:, 2] > 0.3]
    way, slope = evaluate(hand_paths.path_fields(OPEN, THING), places)
    straight = np.array([distance(x, THING[:3], THING[3:6], 0.0) for x in places])
    assert (way > straight - 0.03).all() and (way < 1.12 * straight + 0.06).all()
    off = places - THING[:3]
    outward = np.sum(slope * off, 1) / np.linalg.norm(off, axis=1)
    assert np.median(outward) > 0.95 and (outward > 0.5).all()


def test_from_below_a_board_it_leads_about_the_edge():
    """The nearest edge is at 0.3 m; the hand needs room beside it, and then goes back."""
    below = np.array([[0.0, 0.0, 0.55], [0.0, 0.1, 0.5], [0.1, -0.1, 0.6]])
    way, slope = evaluate(hand_paths.path_fields(TABLE, THING), below)
    edge = 0.3 + hand_paths.CLEARANCE
    least = [np.hypot(edge - abs(y), 0.7 - z) + edge for _, y, z in below]
    assert (way > np.array(least) - 0.1).all() and (way < 1.3 * np.array(least) + 0.1).all()
    assert slope[1, 1] < -0.5 and slope[2, 1] > 0.5  # it gets longer inwards


def test_who_goes_down_the_way_arrives_and_touches_nothing():
    """Follow the gradient by 2 cm per step, from below the board, from the side and from above."""
    start = np.array([[0.05, 0.15, 0.5], [0.6, 0.3, 0.4], [-0.5, 0.2, 1.2], [0.3, -0.6, 0.45]])
    field, x = hand_paths.path_fields(TABLE, THING), start.copy()
    nearest = np.full(len(x), np.inf)
    for _ in range(150):
        way, slope = evaluate(field, x)
        far = way > 0.02
        x = x - 0.02 * slope * far[:, None]
        nearest = np.minimum(nearest, [distance(p, BOARD[:3], BOARD[3:6], 0.0) for p in x])
    assert (np.array([distance(p, THING[:3], THING[3:6], 0.0) for p in x]) < 0.03).all()
    assert (nearest > 0.005).all()


def test_the_last_part_is_straight_and_the_slope_is_of_length_one_or_zero():
    field = hand_paths.path_fields(TABLE, THING)
    near = THING[:3] + np.array([[0.0, 0.0, 0.07], [0.05, 0.0, 0.0], [0.0, 0.0, 0.0]])
    way, slope = evaluate(field, near)
    np.testing.assert_allclose(way, [0.04, 0.03, 0.0], atol=1e-6)
    np.testing.assert_allclose(slope, [[0, 0, 1], [1, 0, 0], [0, 0, 0]], atol=1e-5)


def test_beyond_the_cube_it_leads_straight_to_it():
    field = hand_paths.path_fields(OPEN, THING)
    edge = (hand_paths.CELLS - 1) / 2 * hand_paths.WIDTH
    (inside, outside), slope = evaluate(
        field, THING[:3] + np.array([[edge, 0, 0], [edge + 2, 0, 0]])
    )
    np.testing.assert_allclose(outside, inside + 2, rtol=1e-3)
    np.testing.assert_allclose(slope[1], [1, 0, 0], atol=0.05)


def test_what_no_cell_sees_has_straight_ways():
    """The object is inside a solid box."""
    solid = jnp.asarray([[0.0, 0.0, 0.73, 0.3, 0.3, 0.3, 1.0, 0.0]], jnp.float32)
    way, _ = evaluate(hand_paths.path_fields(solid, THING), THING[:3] + np.array([[0.5, 0.1, 0.2]]))
    np.testing.assert_allclose(way, np.linalg.norm([0.5, 0.1, 0.2]), atol=0.02)
