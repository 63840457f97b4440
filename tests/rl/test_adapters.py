"""Adapters on fakes with the parts of the libraries that they use.

`check_adapters.py` in this folder compares them with the libraries themselves.
"""

import sys
import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu import rl
from jaxgpu.rl import adapters


class Plain:
    """A counter that ends at 3 and is truncated at `limit`, in gymnax's form."""

    default_params = {"limit": jnp.int32(5), "step": jnp.float32(1)}
    transition_gradients_enabled = False

    def reset_env(self, key, params):
        return jnp.zeros(1), {"x": 0.0, "t": 0}  # weakly typed, as gymnax's often are

    def step_env(self, key, state, action, params):
        state = {"x": state["x"] + jnp.where(action == 1, params["step"], 0.0), "t": state["t"] + 1}
        return state["x"][None], state, state["x"], state["x"] >= 3, {"discount": jnp.ones(())}

    def is_truncated(self, state, params):
        return state["t"] >= params["limit"]

    def action_space(self, params):
        return types.SimpleNamespace(n=2)

    def observation_space(self, params):
        return types.SimpleNamespace(low=np.zeros(1), high=np.full(1, 9.0), shape=(1,))


class BraxState(NamedTuple):
    obs: object
    reward: object
    done: object
    metrics: dict


class Dual:
    """Observations by name, in Brax's form; done when the sum of actions reaches 2."""

    observation_size = {"state": (2,), "privileged": (3,)}
    action_size = 2

    def _state(self, x):
        obs = {"state": x, "privileged": jnp.append(x, 0)}
        return BraxState(obs, jnp.sum(x), jnp.where(jnp.sum(x) >= 2, 1.0, 0.0), {})

    def reset(self, key):
        return self._state(jnp.zeros(2))

    def step(self, state, action):
        return self._state(state.obs["state"] + action)


def test_gymnax_ends_truncates_and_keeps_its_parameters_as_leaves():
    env = adapters.from_gymnax(Plain())
    assert isinstance(env, rl.Environment)
    assert (env.action_space.size, env.observation_space.high) == (2, 9.0)
    state, observation = env.reset(jax.random.key(0))
    ends = []
    for action in (1, 0, 1, 1, 0):
        step = env.step(state, jnp.int32(action), jax.random.key(0))
        state = step.state
        ends.append((float(step.observation[0]), bool(step.terminated), bool(step.truncated)))
    over = [(1, False, False), (1, False, False), (2, False, False), (3, True, False)]
    assert ends == [*over, (3, True, True)]
    lengths = jnp.array([0.5, 2.0], jnp.float32)
    move = lambda step: (
        adapters.from_gymnax(Plain(), {"limit": jnp.int32(5), "step": step})
        .step(env.reset(jax.random.key(0))[0], jnp.int32(1), jax.random.key(0))
        .reward
    )
    np.testing.assert_array_equal(jax.vmap(move)(lengths), lengths)


class Loose(Plain):
    """A counter whose clock has another dtype after a step than at reset."""

    def step_env(self, key, state, action, params):
        seen, state, *rest = super().step_env(key, state, action, params)
        return seen, {"x": state["x"], "t": state["t"].astype(jnp.float32)}, *rest

    def is_truncated(self, state, params):
        return state["t"] >= 5.0


def test_a_state_of_gymnax_keeps_its_types_so_that_it_can_be_scanned():
    env = adapters.from_gymnax(Loose())
    move = lambda state, key: ((out := env.step(state, jnp.int32(1), key)).state, out.reward)
    keys = jax.random.split(jax.random.key(0), 4)
    state, rewards = jax.lax.scan(move, env.reset(keys[0])[0], keys)
    assert state["t"].dtype == jnp.int32 and state["t"] == 4
    np.testing.assert_array_equal(rewards, [1, 2, 3, 4])


def test_brax_is_cut_by_the_clock_and_one_of_its_observations_is_used():
    env = adapters.from_brax(Dual(), max_steps=3, part="privileged")
    assert isinstance(env, rl.Environment) and env.observation_space.shape == (3,)
    state, observation = env.reset(jax.random.key(0))
    ends = []
    for _ in range(3):
        step = env.step(state, jnp.array([0.5, 0.5]), jax.random.key(0))
        state = step.state
        ends.append((float(step.reward), bool(step.terminated), bool(step.truncated)))
        assert not step.info["success"]  # which this environment knows nothing of
    assert ends == [(1, False, False), (2, True, False), (3, True, True)]
    assert step.observation.shape == observation.shape == (3,)


@pytest.fixture
def stand_in(monkeypatch):
    """Fake modules with gymnasium's names that record their arguments."""
    space = lambda kind: lambda *given: (kind, *given)
    spaces = types.SimpleNamespace(Box=space("box"), Discrete=space("discrete"))
    vector = types.SimpleNamespace(
        VectorEnv=object,
        AutoresetMode=types.SimpleNamespace(SAME_STEP="same step"),
        utils=types.SimpleNamespace(batch_space=lambda space, size: (size, *space)),
    )
    seeding = types.SimpleNamespace(np_random=lambda seed: (np.random.default_rng(seed), seed))
    gym = types.SimpleNamespace(Env=object, spaces=spaces, vector=vector)
    monkeypatch.setitem(sys.modules, "gymnasium", gym)
    monkeypatch.setitem(sys.modules, "gymnasium.utils", types.SimpleNamespace(seeding=seeding))
    monkeypatch.setitem(sys.modules, "gymnasium.utils.seeding", seeding)


def test_a_seed_of_gymnasium_repeats_an_episode(stand_in):
    env = adapters.to_gymnasium(rl.make("cartpole"))
    episodes = []
    for _ in range(2):
        first, _ = env.reset(seed=7)
        steps = [env.step(1) for _ in range(12)]
        last = next(step for step in steps if step[2])
        episodes.append((first.tolist(), last[0].tolist()))
        assert isinstance(last[1], float) and isinstance(last[2], bool)
    assert episodes[0] == episodes[1]
    assert env.reset()[0].tolist() != episodes[0][0]
    with pytest.raises(ValueError, match="step: action is 2; it must be one of 0 ... 1"):
        env.step(2)


def test_gymnasium_makes_every_task_by_its_name(stand_in, monkeypatch):
    known = {}
    put = lambda **given: known.update({given.pop("id"): given})
    monkeypatch.setattr(sys.modules["gymnasium"], "register", put, raising=False)
    adapters.register_gymnasium()
    assert len(known) == len(rl.names()) and "jaxgpu/surgical-psm-reach" in known
    made = known["jaxgpu/cartpole"]
    assert made["entry_point"](**made["kwargs"]).reset(seed=0)[0].shape == (4,)
    many = made["vector_entry_point"](**made["kwargs"], num_envs=3)
    assert many.reset(seed=0)[0].shape == (3, 4)


@pytest.mark.slow
def test_many_keep_their_last_observations(stand_in):
    env = adapters.to_gymnasium_vector(rl.make("cartpole"), 3)
    assert env.action_space == (3, "discrete", 2)
    env.reset(seed=0)
    for _ in range(15):
        observation, reward, terminated, truncated, info = env.step([1, 1, 1])
        over = terminated | truncated
        assert ("final_obs" in info) == over.any()
        if over.any():
            assert np.abs(info["final_obs"][over, 2]).min() > 12 * np.pi / 180
            assert np.abs(observation[over]).max() <= 0.05
            return
    raise AssertionError("no episode ended")


def test_actions_that_a_vector_does_not_have_are_refused_in_a_sentence(stand_in):
    """2**32 is 0 in the last 32 bits, 1e300 is infinite in single precision."""
    cart = adapters.to_gymnasium_vector(rl.make("cartpole"), 2)
    cart.reset(seed=0)
    for wrong in (np.full(2, 2**32), np.full(2, 2**63, np.uint64), np.full(2, -1)):
        with pytest.raises(ValueError, match="must be one of 0 ... 1"):
            cart.step(wrong)
    for wrong in (np.zeros(2), np.ones(2, bool), ["a", "b"]):
        with pytest.raises(TypeError, match="must be whole numbers, of an integer type"):
            cart.step(wrong)
    pendulum = adapters.to_gymnasium_vector(rl.make("pendulum"), 2)
    pendulum.reset(seed=0)
    for wrong in (1e300, np.nan):
        with pytest.raises(ValueError, match="step: action holds (inf|nan)"):
            pendulum.step(np.full((2, 1), wrong))
    for wrong in (np.ones((2, 1), object), np.full((2, 1), 1j), [["a"], ["b"]]):
        with pytest.raises(TypeError, match="must be real numbers"):
            pendulum.step(wrong)


def test_bad_input_is_named(monkeypatch):
    with pytest.raises(TypeError, match="from_gymnax: CartPole has no reset_env; give"):
        adapters.from_gymnax(rl.make("cartpole"))
    with pytest.raises(TypeError, match="from_brax: int has no reset; give"):
        adapters.from_brax(3)
    with pytest.raises(ValueError, match="no observation 'pixels'; there are state, privileged"):
        adapters.from_brax(Dual(), part="pixels")
    uneven = types.SimpleNamespace(low=np.array([-1.0, -2.0]), high=np.ones(2), shape=(2,))
    other = Plain()
    other.action_space = lambda params: uneven
    with pytest.raises(ValueError, match="the bounds must be the same"):
        _ = adapters.from_gymnax(other).action_space
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match="gymnasium is not installed; pip install"):
        adapters.to_gymnasium(rl.make("cartpole"))
