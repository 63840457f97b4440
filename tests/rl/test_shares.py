"""Collective operations of eight devices: split rows, gather, merge moments, mean gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from jaxgpu.devices import mesh
from jaxgpu.rl import collectives, vector
from jaxgpu.rl.envs.classic import Pendulum
from jaxgpu.rl.learners import normalizer, optimizer

EIGHT = mesh.make_mesh(8, "a")
RANDOM = np.random.default_rng(0)
WHOLE = P()
ROWS = jnp.asarray(RANDOM.normal(3, 0.5, (64, 3)) * [1, 100, 1e-3], jnp.float32)


def map_devices(f, out: Any = WHOLE):
    """Apply `f` to the rows of each of eight devices."""
    where: dict[str, Any] = {
        "mesh": EIGHT,
        "in_specs": P("a"),
        "out_specs": out,
        "check_vma": False,
    }
    return jax.jit(jax.shard_map(f, **where))


def test_rows_that_are_drawn_for_all_are_shared_out_and_joined():
    draw = lambda _: collectives.local_rows(jax.random.normal(jax.random.key(0), (16, 2)), "a")
    drawn = jax.random.normal(jax.random.key(0), (16, 2))
    np.testing.assert_array_equal(map_devices(draw, P("a"))(ROWS), drawn)
    np.testing.assert_array_equal(map_devices(lambda x: collectives.all_gather(x, "a"))(ROWS), ROWS)
    key = jax.random.key(1)
    apart = map_devices(
        lambda _: jax.random.key_data(collectives.device_key(key, "a"))[None], P("a")
    )(ROWS)
    assert len(np.unique(apart, axis=0)) == 8
    assert collectives.device_key(key, None) is key and collectives.local_rows(ROWS, None) is ROWS


def test_one_device_has_all_rows_and_its_key_is_the_key():
    key = jax.random.key(0)
    assert collectives.axis_size(None) == 1 and collectives.device_key(key, None) is key
    for of_all in (
        collectives.local_rows,
        collectives.all_gather,
        collectives.psum,
        collectives.pmean,
    ):
        assert of_all(ROWS, None) is ROWS


def test_sums_and_means_are_one_reduction_of_numbers_of_any_shape():
    tree = lambda x: {"sum": jnp.sum(x, 0), "count": jnp.float32(len(x))}
    total = map_devices(lambda x: collectives.psum(tree(x), "a"))(ROWS)
    np.testing.assert_allclose(total["sum"], np.sum(ROWS, 0, dtype=float), rtol=1e-6)
    assert (
        total["count"] == 64
        and map_devices(lambda x: collectives.pmean(tree(x), "a"))(ROWS)["count"] == 8
    )


def test_moments_of_all_devices_keep_a_narrow_spread():
    """The mean of squares minus the squared mean would lose the spread: 1e-2 beside 1e4."""
    x = jnp.asarray(1e4 + RANDOM.normal(0, 1e-2, (64, 2)), jnp.float32)
    mean, square = map_devices(lambda x: collectives.moments(x, (0,), "a"))(x)
    exact = np.asarray(x, float)
    np.testing.assert_allclose(mean, exact.mean(0), rtol=2e-7)
    np.testing.assert_allclose(square, exact.var(0) * 64, rtol=2e-2)  # of means rounded at 1e-3


def test_observations_of_all_devices_are_taken_in():
    seen = normalizer.update(normalizer.init(jnp.zeros(3)), ROWS[:8] * 2)
    one = normalizer.update(seen, ROWS)
    many = map_devices(lambda x: normalizer.update(seen, x, "a"))(ROWS)
    fresh = normalizer.init(jnp.zeros(3))
    later = map_devices(lambda x: normalizer.merge(seen, normalizer.update(fresh, x), "a"))(ROWS)
    for got in (many, later):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6), got, one)


@pytest.mark.parametrize("bound", [np.inf, 0.5])
def test_the_gradient_that_is_descended_is_the_mean_and_not_the_sum(bound):
    """Adam's first moment is a tenth of it; Adam's step would look the same with either."""
    goal = jnp.asarray([1.0, 2.0, 3.0])
    loss = lambda p, x: jnp.mean(jnp.sum((p["a"][None] * x + p["b"] - goal[None]) ** 2, 1))
    start = {"a": jnp.ones(3), "b": jnp.float32(0.5)}
    order = jnp.arange(64)[None]

    def passes(batch, orders, axis):
        state = optimizer.init(start)
        return optimizer.run_minibatches(loss, start, state, batch, orders, 0.1, bound, axis=axis)

    one = jax.jit(lambda x: passes(x, order, None))(ROWS)
    many = map_devices(lambda x: passes(x, jnp.arange(8)[None], "a"))(ROWS)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), many, one)
    gradient = jnp.concatenate([x.ravel() for x in jax.tree.leaves(jax.grad(loss)(start, ROWS))])
    length = jnp.linalg.norm(gradient)
    assert length > 0.5
    moment = jnp.linalg.norm(many[1][1].mu)
    np.testing.assert_allclose(moment, 0.1 * min(length, bound), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("restart", ["fresh", "bank", "same"])
def test_copies_on_eight_devices_play_what_they_play_on_one(restart):
    """The same random numbers are used, in every mode of restart."""

    def play(axis):
        envs = vector.vectorize(Pendulum(max_steps=3), 16, restart, axis)

        def step(state, key):
            return envs.step(state, jnp.full((envs.num_local, 1), 0.3), key)

        keys = jax.random.split(jax.random.key(1), 4)
        out = jax.lax.scan(step, envs.reset(jax.random.key(0)), keys)[1]
        return jnp.moveaxis(out.observation, 0, 1), out.report(axis)

    one, report = jax.jit(lambda: play(None))()
    many, reports = map_devices(lambda _: play("a"), (P("a"), P()))(ROWS)
    np.testing.assert_allclose(many, one, rtol=1e-6, atol=1e-6)
    assert report["episodes"] == reports["episodes"] == 16
    np.testing.assert_allclose(reports["episode_return"], report["episode_return"], rtol=1e-5)
