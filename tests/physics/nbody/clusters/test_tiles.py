"""Bodies that are due: all are found, each is moved once, nobody else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgpu.physics.nbody.clusters import tiles

few = jax.jit(lambda due: tiles.indices(due, 16))


@pytest.mark.parametrize("total", [0, 1, 2, 17, 64, 65, 700, 10_007])
def test_all_that_are_due_are_found_in_order(total):
    """More than 64 of them take another way; the last row of 128 is not full."""
    where = np.sort(np.random.default_rng(total).choice(10_007, total, replace=False))
    due = np.zeros(10_007, bool)
    due[where] = True
    index, count = few(due)
    assert count == total
    np.testing.assert_array_equal(index[:total], where)
    assert (index[total:] == 10_007).all()


def test_neighbours_in_one_row_and_at_its_ends_are_found():
    for where in ([127, 128, 129, 255], [0, 10_006], list(range(300, 364))):
        due = np.zeros(10_007, bool)
        due[where] = True
        np.testing.assert_array_equal(few(due)[0][: len(where)], where)


@jax.jit
def counted(due):
    """How often each body was moved, and how many said they floored: those of odd index."""
    move = lambda some, times: (times + 1, some % 2 == 1)
    return tiles.advance(jnp.zeros(37, jnp.int32), due, move, 4, 16)


@given(st.lists(st.booleans(), min_size=37, max_size=37))
@settings(deadline=None, max_examples=50)
def test_who_is_due_is_moved_once(due):
    times, floored = counted(np.array(due))
    np.testing.assert_array_equal(times, due)
    assert floored == sum(due[1::2])
