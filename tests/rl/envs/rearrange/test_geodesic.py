"""Lengths of shortest paths, against Dijkstra's algorithm on a graph of the same cells."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from jaxgpu.rl.envs.rearrange import geodesic


def run_dijkstra(free, goal, cell=0.1):
    """Return the shortest distance from the goal to all cells, with an edge per neighbor."""
    n, m = free.shape
    number = np.arange(n * m).reshape(n, m)
    rows, columns, lengths = [], [], []
    for i in range(n):
        for j in range(m):
            for a, b in ((0, 1), (1, 0), (1, 1), (1, -1)):
                p, q = i + a, j + b
                if not (p < n and 0 <= q < m and free[i, j] and free[p, q]):
                    continue
                if a and b and not (free[p, j] and free[i, q]):
                    continue
                rows += [number[i, j], number[p, q]]
                columns += [number[p, q], number[i, j]]
                lengths += 2 * [cell * np.hypot(a, b)]
    graph = coo_array((lengths, (rows, columns)), shape=(n * m, n * m)).tocsr()
    starts = number[free & goal]
    if len(starts) == 0:
        return np.full((n, m), np.inf)
    return dijkstra(graph, indices=starts, min_only=True).reshape(n, m)


@pytest.mark.parametrize("seed", range(5))
def test_ways_are_those_of_dijkstra(seed):
    rng = np.random.default_rng(seed)
    free = rng.random((31, 24)) < 0.68  # near where ways through cells at random break up
    goal = np.zeros_like(free)
    goal[tuple(rng.integers((31, 24), size=(3, 2)).T)] = True
    got = np.asarray(geodesic.distances(jnp.asarray(free), jnp.asarray(goal)))
    true = run_dijkstra(free, goal)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(true))
    # The tolerance is for a sum of up to 200 steps in float32.
    there = np.isfinite(true)
    np.testing.assert_allclose(got[there], true[there], rtol=1e-5, atol=1e-6)


def test_on_an_empty_floor_a_way_has_as_few_steps_across_as_it_can():
    goal = jnp.zeros((31, 24), bool).at[4, 7].set(True)
    got = geodesic.distances(jnp.ones((31, 24), bool), goal)
    i, j = np.abs(np.arange(31)[:, None] - 4), np.abs(np.arange(24)[None] - 7)
    want = 0.1 * (np.maximum(i, j) + (np.sqrt(2) - 1) * np.minimum(i, j))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_many_floors_at_once_are_those_one_by_one():
    rng = np.random.default_rng(1)
    free = jnp.asarray(rng.random((3, 31, 24)) < 0.8)
    goal = jnp.zeros((3, 31, 24), bool).at[:, 8, 8].set(True)
    together = jax.vmap(geodesic.distances)(free, goal)
    for one, cells, at in zip(together, free, goal):
        np.testing.assert_array_equal(one, geodesic.distances(cells, at))


def test_cells_near_a_place_are_free_and_within_reach():
    free = jnp.ones((12, 12), bool).at[5, 5].set(False)
    near = np.asarray(geodesic.cells_near(free, jnp.array([0.55, 0.55, 0.8]), 0.25))
    i, j = np.nonzero(near)
    assert len(i) == 20 and np.all(np.hypot(i - 5, j - 5) < 2.5) and not near[5, 5]


def test_wrong_cells_are_refused():
    with pytest.raises(TypeError, match="free must be an array"):
        geodesic.distances(jnp.ones((3, 3)), jnp.ones((3, 3), bool))
    with pytest.raises(ValueError, match="have the same shape"):
        geodesic.distances(jnp.ones((3, 3), bool), jnp.ones((4, 3), bool))
