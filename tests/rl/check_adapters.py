"""Comparison of adapters and logs with the real libraries, which the tests do without.

pip install gymnasium gymnax brax tensorboardX, then
python -m pytest -p no:cacheprovider -W ignore tests/rl/check_adapters.py
"""

import brax.envs
import gymnasium
import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from rl_pictures import Pointer
from tensorboardX.proto import event_pb2

from jaxgpu import rl
from jaxgpu.rl import adapters
from jaxgpu.rl.logs import to_tensorboard


@pytest.fixture(autouse=True)
def allow_promotion():
    """Allow the implicit promotion and the old random keys of the other libraries."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        with jax.legacy_prng_key("allow"):
            yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["cartpole", "pendulum", "surgical/psm-reach"])
def test_gymnasium_accepts_ours(name):
    check_env(adapters.to_gymnasium(rl.make(name)), skip_render_check=True)


@pytest.mark.filterwarnings("ignore")
def test_gymnasium_accepts_pictures_and_dictionaries():
    env = adapters.to_gymnasium(Pointer())
    check_env(env, skip_render_check=True)
    assert env.observation_space["eye"].dtype == np.uint8


def test_a_single_environment_gives_the_states_of_gymnasium():
    ours, theirs = adapters.to_gymnasium(rl.make("cartpole")), gymnasium.make("CartPole-v1")
    first, _ = ours.reset(seed=3)
    theirs.reset(seed=0)
    theirs.unwrapped.state = first.astype(float)
    for action in np.random.default_rng(0).integers(0, 2, 200):
        a, b = ours.step(action), theirs.step(action)
        np.testing.assert_allclose(a[0], b[0], atol=1e-4)
        assert a[1:4] == b[1:4]
        if a[2]:
            break
    assert a[2]


def test_many_begin_anew_in_the_same_step():
    """Compare with gymnasium's own vector in the same mode: the same keys, shapes and dtypes."""
    same = gymnasium.vector.AutoresetMode.SAME_STEP
    make = [lambda: gymnasium.make("CartPole-v1")] * 5
    theirs = gymnasium.vector.SyncVectorEnv(make, autoreset_mode=same)
    ours = adapters.to_gymnasium_vector(rl.make("cartpole"), 5)
    assert ours.observation_space.shape == theirs.observation_space.shape
    assert ours.action_space == theirs.action_space
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"] == same
    ours.reset(seed=0), theirs.reset(seed=0)
    seen = 0
    for _ in range(60):
        a, b = ours.step(np.ones(5, int)), theirs.step(np.ones(5, int))
        for x, y in zip(a[:4], b[:4]):
            assert x.shape == y.shape and x.dtype.kind == y.dtype.kind
        if (over := a[2] | a[3]).any():
            seen += over.sum()
            np.testing.assert_array_equal(a[4]["_final_obs"], over)
            assert np.abs(a[4]["final_obs"][over, 2]).min() > 12 * np.pi / 180  # fallen
            assert np.abs(a[0][over]).max() <= 0.05  # restarted
        assert ("final_obs" in a[4]) == over.any()
    assert seen >= 20


def test_gymnax_gives_its_own_steps_and_learns():
    inner, params = gymnax.make("CartPole-v1")
    env = adapters.from_gymnax(inner, params)
    key = jax.random.key(0)
    state, observation = env.reset(key)
    want, other = inner.reset_env(key, params)
    np.testing.assert_array_equal(observation, want)
    for action in (0, 1, 1):
        step = env.step(state, jnp.int32(action), key)
        want, other, reward, over, _ = inner.step_env(key, other, jnp.int32(action), params)
        np.testing.assert_allclose(step.observation, want, rtol=1e-6)
        assert (step.reward, step.terminated, step.truncated) == (reward, over, False)
        state = step.state
    learner = rl.PPO(
        learning_rate=2.5e-3, num_envs=16, num_steps=64, update_epochs=6, num_minibatches=4
    )
    end, _ = jax.jit(lambda key: rl.learn(env, learner, key, 60))(key)
    scores = rl.evaluate(env, learner.policy(env, end), key, 50, 500)
    assert scores.episode_return.mean() > 300


def test_brax_gives_its_own_steps_and_is_cut_by_the_clock():
    inner = brax.envs.get_environment("fast")
    env = adapters.from_brax(inner, max_steps=3)
    state, _ = env.reset(jax.random.key(0))
    other = inner.reset(jax.random.key(0))
    for i in range(3):
        step = env.step(state, jnp.zeros(1), jax.random.key(1))
        other = inner.step(other, jnp.zeros(1))
        np.testing.assert_allclose(step.observation, other.obs)
        np.testing.assert_allclose(step.reward, other.reward)
        assert bool(step.truncated) == (i == 2)
        state = step.state
    learner = rl.PPO(num_envs=4, num_steps=8, update_epochs=1, num_minibatches=2)
    env = adapters.from_brax(brax.envs.get_environment("inverted_pendulum"), max_steps=50)
    state, reports = jax.jit(lambda key: rl.learn(env, learner, key, 2))(jax.random.key(0))
    assert np.isfinite(reports["episode_return"]).all()


def test_tensorboard_files_hold_the_reports(tmp_path):
    """A record has 8 bytes of length, 4 of checksum, the event, and 4 of checksum."""
    to_tensorboard({"episode_return": np.array([3.0, 4.5])}, tmp_path, 64)
    (file,) = tmp_path.iterdir()
    data, rows = file.read_bytes(), []
    while data:
        size = int.from_bytes(data[:8], "little")
        event = event_pb2.Event.FromString(data[12 : 12 + size])
        rows += [(value.tag, value.simple_value, event.step) for value in event.summary.value]
        data = data[16 + size :]
    assert rows == [("episode_return", 3.0, 64), ("episode_return", 4.5, 128)]
