"""Helper functions shared by the algorithms, against their definitions."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgpu.evolution import Permutation, population
from jaxgpu.evolution.population import Population
from jaxgpu.evolution.problem import Box, Problem
from jaxgpu.evolution.space import Encoding


def members(x):
    x = jnp.asarray(x, jnp.float32)
    return Population(x, jnp.sum(x, 1, keepdims=True), jnp.zeros(len(x), jnp.float32))


def test_a_sample_fills_the_box_evenly_and_is_not_evaluated():
    box = Box(jnp.array([-1.0, 10.0]), jnp.array([1.0, 30.0]))
    got = population.sample(jax.random.key(0), Problem(box, lambda x: x, 2), 4000)
    assert (got.x >= box.lower[None]).all() and (got.x <= box.upper[None]).all()
    # Allow six standard deviations of the mean of 4000 uniform numbers.
    middle = np.abs(np.asarray(got.x).mean(0) - [0, 20]) / [2, 20]
    assert (middle < 6 / np.sqrt(12 * 4000)).all()
    assert np.isinf(got.f).all() and np.isinf(got.violation).all()


def test_marked_members_are_found_in_order():
    mask = np.random.default_rng(0).random(500) < 0.3
    got = jax.jit(population.flatnonzero, static_argnums=1)(mask, int(mask.sum()))
    np.testing.assert_array_equal(got, np.flatnonzero(mask))


def test_all_but_the_first_of_equal_members_are_infinitely_bad():
    random = np.random.default_rng(1)
    x = random.integers(0, 3, (300, 4))
    f, violation = jax.jit(population.eliminate_duplicates)(members(x))
    _, first = np.unique(x, axis=0, return_index=True)
    kept = np.isin(np.arange(300), first)
    np.testing.assert_array_equal(np.isfinite(f[:, 0]), kept)
    np.testing.assert_array_equal(np.isfinite(violation), kept)


def test_members_that_stand_for_one_point_are_equal_whatever_their_vectors():
    """Two objects have two orders: only the comparison of the two values counts."""
    x = jnp.array([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.1, 0.9]])
    box = Box(jnp.zeros(2), jnp.ones(2), Encoding(Permutation(2)))
    f, violation = jax.jit(population.eliminate_duplicates)(members(x), box)
    assert np.isfinite(f[:, 0]).tolist() == [True, False, True, False]
    assert np.isfinite(violation).tolist() == [True, False, True, False]


def test_a_permutation_holds_every_index_once():
    permutation = jax.jit(population.permutation, static_argnums=1)
    got = [permutation(jax.random.key(i), 100) for i in range(5)]
    assert all((np.sort(p) == np.arange(100)).all() for p in got)
    assert len({tuple(np.asarray(p).tolist()) for p in got}) == 5


def test_merge_take_and_inside():
    both = population.merge(members([[1, 2]]), members([[3, 4], [5, 6]]))
    np.testing.assert_array_equal(population.take(both, jnp.array([2, 0])).x, [[5, 6], [1, 2]])
    box = Box(jnp.zeros(2), jnp.array([4.0, 5.0]))
    np.testing.assert_array_equal(population.clip(box, both.x[2:]), [[4, 5]])


def test_minus_zero_is_zero_and_a_copy_is_found_past_another_point_with_its_hash():
    f, _ = population.eliminate_duplicates(members([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]]))
    np.testing.assert_array_equal(np.isfinite(f[:, 0]), [True, False, True])
    # Two different rows with the same hash were found among 2^18 by a birthday search.
    x = np.random.default_rng(3).random((1 << 18, 2)).astype(np.float32)
    words = np.asarray(jax.jit(population.row_hashes)(x))
    order = np.argsort(words, kind="stable")
    at = np.flatnonzero(words[order][1:] == words[order][:-1])
    assert len(at) > 0
    a, b = x[order[at[0]]], x[order[at[0] + 1]]
    assert (a != b).any()
    f, _ = population.eliminate_duplicates(members([a, b, a]))
    np.testing.assert_array_equal(np.isfinite(f[:, 0]), [True, True, False])
