"""The scheduler: it finds all due bodies, moves each once at its time, and stores its results."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxgpu.inputs.fields import pytree
from jaxgpu.physics.nbody.clusters import scheduler
from jaxgpu.physics.nbody.clusters.scheduler import change_if

COUNT, WIDTHS = 1500, (4, 64)
BY_PAGES = partial(scheduler.advance_by_pages, widths=WIDTHS)


@pytree
class Bodies:
    """Bodies that record the times at which they moved."""

    seen: jax.Array  # [2, N] how often each moved, and the sum of the times at which it did
    again: jax.Array  # [N] int32: how often it moved a second time
    t: jax.Array  # [N]
    dt: jax.Array  # [N]


def bodies(steps):
    zero = jnp.zeros(COUNT)
    return Bodies(jnp.zeros((2, COUNT)), jnp.zeros(COUNT, jnp.int32), zero, jnp.asarray(steps))


@partial(jax.jit, static_argnames="form")
def run_blocks(group, form=BY_PAGES):
    """Advance all bodies from 0 to 1 in blocks; return the reported moves and floored moves."""
    packing = scheduler.Packing(group)

    def move(some, old):
        now = old.t + old.dt
        seen = old.seen + jnp.stack([jnp.ones_like(now), now])
        return Bodies(seen, old.again, now, old.dt), some % 2 == 1

    is_odd = lambda new: new.seen[0] % 2 == 1

    def second(total):
        def move(some, old):
            many = jnp.where(total > 0, old.again + 1, -1000)
            return Bodies(old.seen, many, old.t, old.dt), some < 0

        return move

    def block(carry):
        schedule, _, counts = carry
        now = jnp.min(schedule.soonest)
        given = packing, now, move, (is_odd, second)
        schedule, total, low = form(*given, schedule=schedule)
        return schedule, now, counts + jnp.stack([total, low])

    start = scheduler.open_schedule(packing, group, WIDTHS), jnp.zeros(()), jnp.zeros(2, jnp.int32)
    schedule, _, counts = jax.lax.while_loop(lambda carry: carry[1] < 1, block, start)
    return packing.group(schedule.rows), counts


@pytest.mark.parametrize("seed", range(5))
def test_everyone_moves_at_each_of_its_times_and_nobody_else(seed):
    """A body of step 2^-k moves 2^k times, with a known sum; one that waits never moves."""
    depth = np.random.default_rng(seed).geometric(0.3, COUNT) - 1
    steps = np.where(depth > 7, np.inf, 0.5 ** np.minimum(depth, 7))
    end, counts = run_blocks(bodies(steps))
    moves = np.where(depth > 7, 0, 2.0 ** np.minimum(depth, 7))
    np.testing.assert_array_equal(end.seen[0], moves)
    np.testing.assert_allclose(end.seen[1], (moves + 1) / 2 * (moves > 0), rtol=1e-6)
    np.testing.assert_array_equal(end.again, (moves + 1) // 2)
    np.testing.assert_array_equal(counts, [moves.sum(), moves[1::2].sum()])


@pytest.mark.parametrize("form", [scheduler.advance_all, scheduler.advance_wide_tiles])
def test_the_forms_for_accelerators_move_whom_the_form_for_cpus_moves(form):
    depth = np.random.default_rng(0).geometric(0.3, COUNT) - 1
    group = bodies(np.where(depth > 5, np.inf, 0.5 ** np.minimum(depth, 5)))
    for got, want in zip(
        jax.tree.leaves(run_blocks(group, form)), jax.tree.leaves(run_blocks(group))
    ):
        np.testing.assert_array_equal(got, want)


def test_one_of_them_alone_is_found_on_the_last_page():
    steps = np.full(COUNT, np.inf)
    steps[-1] = 0.25
    end, counts = run_blocks(bodies(np.where(np.isinf(steps), 1.0, steps)))
    assert end.seen[0, -1] == 4 and (end.seen[0, :-1] == 1).all()
    assert counts[0] == 4 + COUNT - 1


def test_rows_give_back_the_fields_with_their_types():
    group = bodies(np.ones(COUNT))
    group = Bodies(group.seen + 0.1, group.again + 123_456, group.t, group.dt)
    packing = scheduler.Packing(group)
    rows = packing.rows(group)
    assert rows.shape == (COUNT, 5)
    np.testing.assert_array_equal(rows[:, packing.columns["seen"]].T, group.seen)
    for one, other in zip(
        jax.tree.leaves(group), jax.tree.leaves(packing.group(rows)), strict=True
    ):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


few = jax.jit(lambda due: scheduler.due_indices(due, 16))


@pytest.mark.parametrize("total", [0, 1, 2, 17, 64, 65, 700, 10_007])
def test_all_that_are_due_are_found_in_order(total):
    """More than 64 of them take another code path; the last row of 128 is not full."""
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
def count_moves(due):
    """Return how often each body moved, and how many reported a floored step: the odd ones."""
    move = lambda some, times: (times + 1, some % 2 == 1)
    return scheduler.advance_group(jnp.zeros(37, jnp.int32), due, move, 4)


@jax.jit
def count_moves_at_once(due):
    move = lambda some, times: (times + 1, some % 2 == 1)
    return scheduler.advance_whole_group(move, jnp.zeros(37, jnp.int32), due)


@pytest.mark.parametrize("form", [count_moves, count_moves_at_once])
@given(due=st.lists(st.booleans(), min_size=37, max_size=37))
@settings(deadline=None, max_examples=50)
def test_who_is_due_is_moved_once(form, due):
    times, floored = form(np.array(due))
    np.testing.assert_array_equal(times, due)
    assert floored == sum(due[1::2])


@jax.jit
def square_if(condition, value):
    return change_if(condition, lambda old: {"x": old["x"] ** 2, "k": old["k"] + 1}, value)


@pytest.mark.parametrize("condition", [True, False])
def test_changes_once_or_not_at_all(condition):
    x, k = jnp.array([2.0, -3.0]), jnp.int32(4)
    got, way = jax.jvp(lambda x: square_if(condition, {"x": x, "k": k})["x"], (x,), (jnp.ones(2),))
    np.testing.assert_array_equal(got, [4.0, 9.0] if condition else x)
    np.testing.assert_array_equal(way, [4.0, -6.0] if condition else [1.0, 1.0])
    assert square_if(condition, {"x": x, "k": k})["k"] == 4 + condition


def test_each_of_a_batch_for_itself():
    x = jnp.array([2.0, -3.0])
    got = jax.vmap(lambda condition, x: change_if(condition, jnp.square, x))(
        jnp.array([True, False]), x
    )
    np.testing.assert_array_equal(got, [4.0, -3.0])


def test_a_group_of_one_moves():
    group = jnp.array([[1.0], [2.0]])
    move = lambda index, old: (old + 10, jnp.zeros(index.shape, bool))
    for due in (True, False):
        new, floored = scheduler.advance_group(group, jnp.array([due]), move, 4)
        np.testing.assert_array_equal(new, group + 10 * due)
        assert floored == 0


def test_nobody_moves_in_a_group_of_none():
    group = jnp.zeros((3, 0))
    new, floored = scheduler.advance_group(group, jnp.zeros(0, bool), None, 4)
    assert new is group and floored == 0


@pytest.mark.parametrize("count, large", [(1500, False), (20_000, True)])
def test_the_many_move_in_tiles_of_two_sizes_and_the_few_in_one(count, large):
    """The larger size is 16 times the smaller, as documented for accelerators."""
    like = jax.ShapeDtypeStruct((count,), jnp.float32)
    widths = []

    def block(t):
        group = Bodies(jnp.stack([t, t]), jnp.zeros(count, jnp.int32), t, t)
        packing = scheduler.Packing(group)

        def move(some, old):
            widths.append(some.size)
            return old, some < 0

        schedule = scheduler.open_schedule(packing, group, WIDTHS)
        now = jnp.min(schedule.soonest)
        return scheduler.advance_wide_tiles(packing, now, move, None, schedule)

    jax.eval_shape(block, like)
    least = min(widths)
    assert set(widths) == ({least, 16 * least} if large else {least})


def test_a_tile_is_no_wider_than_its_group():
    """A tile has one lane per moving body if these are fewer than its size, without copies."""
    widths = []

    def move(index, old):
        widths.append(index.size)
        return old, index < 0

    tile_group = lambda group, due: scheduler.advance_group_tiles(move, 16, group, due)
    for count in (1, 5, 16, 40):
        jax.eval_shape(tile_group, jnp.zeros((2, count)), jnp.zeros(count, bool))
    assert widths == [1, 5, 16, 16]
