"""Training in the package's loop, evaluation, and statistics over runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from rl_probe import Probe

from jaxgpu import rl
from jaxgpu.checkpoint import CheckpointError

SMALL = rl.PPO(copies=4, horizon=8, epochs=1, minibatches=2, hidden=(8,))
ENV = rl.make("cartpole")


@pytest.mark.slow
def test_the_pure_loop_trains_as_the_one_on_the_host():
    key = jax.random.key(0)
    whole = rl.train(ENV, SMALL, key, 6 * 32)
    state, _ = jax.jit(lambda key: rl.learn(ENV, SMALL, key, 6))(key)
    for a, b in zip(jax.tree.leaves(state.params), jax.tree.leaves(whole.state.params)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_another_network_is_refused(tmp_path):
    rl.train(ENV, SMALL, jax.random.key(0), 32, out=tmp_path, schedule=64)
    wider = rl.PPO(copies=4, horizon=8, epochs=1, minibatches=2, hidden=(9,))
    with pytest.raises(CheckpointError, match="resume with the options that wrote it"):
        rl.train(ENV, wider, jax.random.key(0), 64, out=tmp_path, resume=True)


def test_too_few_steps_are_refused():
    with pytest.raises(ValueError, match="steps=31; one update has 32"):
        rl.train(ENV, SMALL, jax.random.key(0), 31)


def test_episodes_count_until_they_end():
    play = lambda key: rl.evaluate(Probe(), lambda x: x, key, 5, 50)
    scores = jax.jit(play)(jax.random.key(0))
    np.testing.assert_array_equal(scores.total, 20)
    np.testing.assert_array_equal(scores.length, 20)
    assert scores.success.all()
    cut = jax.jit(lambda key: rl.evaluate(Probe(), lambda x: x, key, 5, 7))(jax.random.key(0))
    assert not cut.success.any() and (cut.length == 7).all()


def test_the_interquartile_mean_and_its_interval():
    x = np.random.default_rng(0).normal(5, 1, 40).astype(np.float32)
    middle, low, high = rl.interquartile_mean(x, jax.random.key(0))
    assert middle == pytest.approx(scipy.stats.trim_mean(x, 0.25), rel=1e-6)
    statistic = lambda x, axis: scipy.stats.trim_mean(x, 0.25, axis=axis)
    exact = scipy.stats.bootstrap((x,), statistic, method="percentile", rng=1).confidence_interval
    np.testing.assert_allclose([low, high], exact, atol=0.06)  # the draws differ


@pytest.mark.slow
def test_the_same_on_one_and_on_eight_devices():
    """Environments spread over a mesh; sums over them differ by rounding alone."""
    from jaxgpu import mesh

    wide = rl.PPO(copies=16, horizon=4, epochs=1, minibatches=1, hidden=(8,))
    state = jax.jit(lambda key: wide.init(ENV, key, 10))(jax.random.key(0))
    update = jax.jit(lambda state: wide.update(ENV, state, jax.random.key(1)))
    spread = mesh.replicate(state, mesh.devices(8))
    vector = state.vector.spread(mesh.devices(8))
    spread = type(state)(**{**vars(spread), "vector": vector})
    one, eight = update(state), update(spread)
    for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(eight.params)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert len(jnp.asarray(eight.vector.total).sharding.device_set) == 8
