"""The ring buffer against a list, and samples against its content."""

from collections import deque

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.rl.learners import replay


def test_the_newest_rows_are_kept():
    """A deque of the same capacity holds the same rows, for batches of any size."""
    rng, model = np.random.default_rng(0), deque(maxlen=7)
    kept = replay.init({"x": np.zeros(2, np.float32), "on": np.bool_(False)}, 7)
    add = jax.jit(replay.add)
    for count in (3, 3, 7, 3, 3, 3):
        x = rng.normal(size=(count, 2)).astype(np.float32)
        model.extend(x)
        kept = add(kept, {"x": x, "on": x[:, 0] > 0})
        size = int(kept.size)
        assert size == len(model)
        order = lambda rows: sorted(map(tuple, np.asarray(rows).tolist()))
        held, on = (np.asarray(kept.rows[name])[:size] for name in ("x", "on"))
        assert order(held) == order(np.stack(model))
        np.testing.assert_array_equal(on, held[:, 0] > 0)


def test_draws_are_uniform_over_the_rows_held():
    rows = np.arange(1, 5, dtype=np.float32)
    draw = jax.jit(
        lambda key: replay.sample(replay.add(replay.init(np.float32(0), 10), rows), key, 4000)
    )
    counts = np.bincount(np.asarray(draw(jax.random.key(0)), int), minlength=11)
    assert counts[0] == 0 and counts[5:].sum() == 0
    np.testing.assert_allclose(counts[1:5], 1000, atol=5 * np.sqrt(4000 * 0.25 * 0.75))


def test_conforms():
    kept = replay.init(jnp.zeros(2), 3)
    conformance.check(replay.add, kept, jnp.ones((2, 2)), batched=(1,))


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="buffer_size=0; give at least 1"):
        replay.init(np.zeros(2, np.float32), 0)
    one = replay.add(replay.init(np.float32(0), 1), np.float32([5]))  # no room for fewer
    assert one.rows.tolist() == [5] and one.size == 1
    with pytest.raises(ValueError, match="4 rows at once; buffer_size=3; increase it"):
        replay.add(replay.init(np.float32(0), 3), np.zeros(4, np.float32))
