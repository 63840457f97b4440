"""A ledger of bodies: rows give back what they were given, each moves when it is its turn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.physics.nbody.clusters import ledger
from jaxgpu.pytree import pytree

COUNT, WIDTHS = 1500, (4, 64)


@pytree
class Bodies:
    """Bodies that note at which times they moved."""

    seen: jax.Array  # [2, N] how often each moved, and the sum of the times at which it did
    again: jax.Array  # [N] int32: how often it moved a second time
    t: jax.Array  # [N]
    dt: jax.Array  # [N]


def bodies(steps):
    zero = jnp.zeros(COUNT)
    return Bodies(jnp.zeros((2, COUNT)), jnp.zeros(COUNT, jnp.int32), zero, jnp.asarray(steps))


@jax.jit
def passed(group):
    """All of them brought from 0 to 1 in blocks; how many moves and floored moves were reported."""
    layout = ledger.Layout(group)

    def move(some, old):
        now = old.t + old.dt
        seen = old.seen + jnp.stack([jnp.ones_like(now), now])
        return Bodies(seen, old.again, now, old.dt), some % 2 == 1

    odd = lambda new: new.seen[0] % 2 == 1

    def second(total):
        def move(some, old):
            many = jnp.where(total > 0, old.again + 1, -1000)
            return Bodies(old.seen, many, old.t, old.dt), some < 0

        return move

    def block(carry):
        book, _, counts = carry
        now = jnp.min(book.soonest)
        book, total, low = ledger.advance(layout, book, now, move, (odd, second), WIDTHS)
        return book, now, counts + jnp.stack([total, low])

    start = ledger.opened(layout, group, WIDTHS), jnp.zeros(()), jnp.zeros(2, jnp.int32)
    book, _, counts = jax.lax.while_loop(lambda carry: carry[1] < 1, block, start)
    return layout.unpacked(book.rows), counts


@pytest.mark.parametrize("seed", range(5))
def test_everyone_moves_at_each_of_its_times_and_nobody_else(seed):
    """A body of step 2^-k has moved 2^k times, of known sum; one that waits, never."""
    depth = np.random.default_rng(seed).geometric(0.3, COUNT) - 1
    steps = np.where(depth > 7, np.inf, 0.5 ** np.minimum(depth, 7))
    end, counts = passed(bodies(steps))
    moves = np.where(depth > 7, 0, 2.0 ** np.minimum(depth, 7))
    np.testing.assert_array_equal(end.seen[0], moves)
    np.testing.assert_allclose(end.seen[1], (moves + 1) / 2 * (moves > 0), rtol=1e-6)
    np.testing.assert_array_equal(end.again, (moves + 1) // 2)
    np.testing.assert_array_equal(counts, [moves.sum(), moves[1::2].sum()])


def test_one_of_them_alone_is_found_on_the_last_page():
    steps = np.full(COUNT, np.inf)
    steps[-1] = 0.25
    end, counts = passed(bodies(np.where(np.isinf(steps), 1.0, steps)))
    assert end.seen[0, -1] == 4 and (end.seen[0, :-1] == 1).all()
    assert counts[0] == 4 + COUNT - 1


def test_rows_give_back_the_fields_with_their_types():
    group = bodies(np.ones(COUNT))
    group = Bodies(group.seen + 0.1, group.again + 123_456, group.t, group.dt)
    layout = ledger.Layout(group)
    rows = layout.packed(group)
    assert rows.shape == (COUNT, 5)
    for one, other in zip(
        jax.tree.leaves(group), jax.tree.leaves(layout.unpacked(rows)), strict=True
    ):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
