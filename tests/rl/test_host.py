"""Environments that the host steps one call at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl.adapters.host import HostStepper, Layout
from jaxgpu.rl.adapters.pool import PooledVector


def test_a_tree_comes_back_from_its_words_to_the_bit():
    random = np.random.default_rng(0)
    with jax.enable_x64(True):
        tree = {
            "flags": jnp.asarray(random.random(5) < 0.5),
            "wide": jnp.asarray(random.normal(size=(2, 3))).at[0, 0].set(jnp.nan),
            "narrow": jnp.asarray(random.normal(size=7), jnp.bfloat16),
            "count": jnp.int32(-3),
            "none": jnp.zeros((0, 2)),
            "key": jax.random.key(3),
            "large": jnp.arange(50_000, dtype=jnp.float32),
            "complex": jnp.asarray(1 - 2j),
        }
        layout = Layout(tree)
        packed = jax.jit(layout.pack)(tree)
        assert len(packed) == 4 and packed[0].dtype == np.uint32  # three stay apart
        back = jax.jit(layout.unpack)(packed)
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    for name, x in tree.items():
        got = back[name]
        assert got.dtype == x.dtype
        if name == "key":
            got, x = jax.random.key_data(got), jax.random.key_data(x)
        np.testing.assert_array_equal(got, x, err_msg=name)


def test_what_is_seen_may_be_written_to_and_stays():
    move = lambda state, action, key: (state + action, {"sum": state + action, "odd": state > 1})
    host = HostStepper(lambda key: (jnp.zeros(3), jnp.zeros(3)))
    step = host.program(move)
    with pytest.raises(RuntimeError, match="step: the environment has no state yet; call reset"):
        step(np.float32(1))
    host.begin(0)
    one = step(np.float32(1))
    one["sum"][0] = 9
    two = step(np.float32(1))
    np.testing.assert_array_equal(one["sum"], [9, 1, 1])
    np.testing.assert_array_equal(two["sum"], [2, 2, 2])
    assert two["odd"].dtype == bool and not two["odd"].any()


def test_calls_draw_from_keys_of_their_own_and_a_seed_repeats_them():
    draw = lambda state, key: (state, jax.random.normal(key, (2,)))
    host = HostStepper(lambda key: draw(jnp.zeros(()), key))
    step = host.program(draw)
    runs = [np.stack([host.begin(seed), *(step() for _ in range(20))]) for seed in (5, 5, 6)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert np.unique(np.concatenate(runs[1:])).size == 2 * 42


@pytest.mark.slow
def test_each_start_of_a_pool_is_used_once():
    """Copies that fall in different steps restart from consecutive rows."""
    envs = rl.vectorize(rl.make("cartpole"), 5)
    pooled = PooledVector(envs)
    state, _ = pooled.reset(jax.random.key(0))
    state, pool = pooled.fill(state, jax.random.key(1))
    leaves, begun = jax.tree.leaves(pool), []
    step = jax.jit(pooled.step)
    for i in range(60):
        action = jnp.asarray(np.random.default_rng(i).integers(0, 2, 5), jnp.int32)
        state, seen = step(state, action, leaves, jax.random.key(i))
        over = np.asarray(seen.terminated)
        assert seen.begun == over.sum()
        begun.extend(np.asarray(seen.observation)[over])
        np.testing.assert_array_equal(seen.observation[~over], seen.final[~over])
    assert len(begun) == state.used >= 8
    np.testing.assert_array_equal(begun, np.asarray(pool[1])[: len(begun)])


def test_a_pool_has_several_starts_for_each_copy(monkeypatch):
    from jaxgpu.rl.adapters import pool

    monkeypatch.setattr(pool, "_FEWEST", 4)
    monkeypatch.setattr(pool, "_ROUNDS", 2)
    assert PooledVector(rl.vectorize(rl.make("cartpole"), 1)).size(jax.random.key(0)) == 4
    assert PooledVector(rl.vectorize(rl.make("cartpole"), 9)).size(jax.random.key(0)) == 18
