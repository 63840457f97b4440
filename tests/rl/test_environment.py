"""Environments by name, and the protocol that all keep."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from api_cases import as_users
from cases_rearrange import make_task
from conformance import assert_exports, assert_same, avals, check_program

from jaxgpu import rl

QUICK = [
    "acrobot",
    "cartpole",
    "mountain-car-continuous",
    "pendulum",
    "surgical/ecm-reach",
    "surgical/ecm-reach-compat",
    "surgical/needle-pick",
]
# Each family, whose members share their code, has one of these.
DEAR = ["matter/mixing", "reacher", "rearrange/navigate", "touch/peg-insertion"]


def reset(env, key):
    return env.reset(key)


def step(env, state, action, key):
    return env.step(state, action, key)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if "/" not in n or "surgical" in n else pytest.mark.slow)
        for n in rl.names()
    ],
)
def test_every_environment_begins_with_an_observation_of_its_space(name):
    """`tests/core/test_conformance.py` tests their steps by the rules for steppers."""
    env, key = make_task(name), jax.random.key(0)
    assert isinstance(env, rl.Environment) and isinstance(env.differentiable, bool)
    with as_users():
        _, observation = jax.eval_shape(reset, env, key)
        action = jax.eval_shape(env.action_space.sample, key)
    assert observation.shape == env.observation_space.shape
    assert action.shape == env.action_space.shape


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in DEAR)]
)
def test_an_environment_keeps_the_protocol_in_one_program_for_all_numbers(name):
    """A step preserves all dtypes; the environment is an argument of the lowered program."""
    env, key, program = make_task(name), jax.random.key(0), jax.jit(step)
    with as_users():
        state, observation = jax.eval_shape(reset, env, key)
        action = jax.eval_shape(env.action_space.sample, key)
        out = jax.eval_shape(program, env, state, action, key)
        check_program(program, env, state, action, key)
        assert_exports(program, env, state, action, key)
        assert_exports(reset, env, key)
    assert avals((out.state, out.observation)) == avals((state, observation))
    assert out.reward.shape == () and out.terminated.dtype == out.truncated.dtype == bool
    assert out.info["success"].dtype == bool


@pytest.mark.parametrize("name", QUICK)
def test_an_environment_runs_with_64_bit_types(x64, name):
    """Five of them started with 32-bit numbers and had 64-bit ones after a step.

    No loop accepts that.
    """
    with as_users():
        env, key = rl.make(name), jax.random.key(0)
        state, observation = jax.eval_shape(env.reset, key)
        action = jax.eval_shape(env.action_space.sample, key)
        out = jax.eval_shape(env.step, state, action, key)
    assert avals((out.state, out.observation)) == avals((state, observation))
    assert observation.dtype == out.reward.dtype == jnp.float64


@pytest.mark.parametrize("name", rl.names())
def test_a_vector_of_actions_of_another_length_is_refused(name):
    """JAX clamps an index beyond the end of an array: 13 tasks accepted such actions."""
    env, key = make_task(name), jax.random.key(0)
    if not isinstance(env.action_space, rl.Box):
        return
    (count,) = env.action_space.shape
    for shape in ((count - 1,), (count + 1,), (2, count)):
        wrong = np.zeros(shape, np.float32)
        with pytest.raises(ValueError, match="step: action has shape"):
            env.step(None, wrong, key)
        with pytest.raises(ValueError, match="step: action has shape"):
            jax.eval_shape(env.step, None, wrong, key)
    with pytest.raises(ValueError, match="step: action=nan"):
        env.step(None, np.full(count, np.nan, np.float32), key)


@pytest.mark.parametrize(
    "name", ["pendulum", pytest.param("surgical/ecm-reach-compat", marks=pytest.mark.slow)]
)
def test_two_copies_in_one_program_are_two_steps(name):
    """Use `vmap` over states, with the environment as an argument of the program."""
    env, keys = rl.make(name), jax.random.split(jax.random.key(0))
    actions = np.random.default_rng(0).uniform(-1, 1, (2, *env.action_space.shape))
    actions = actions.astype(np.float32)
    states, _ = jax.jit(jax.vmap(reset, (None, 0)))(env, keys)
    mapped = jax.jit(jax.vmap(step, (None, 0, 0, 0)))(env, states, actions, keys)
    single = jax.jit(step)
    for i in range(2):
        state, lane = (
            jax.tree.map(lambda x, i=i: np.asarray(x)[i], tree) for tree in (states, mapped)
        )
        assert_same(lane, single(env, state, actions[i], keys[i]), 1e-5)


def test_episodes_are_played_with_64_bit_types(x64):
    env, key = rl.make("surgical/needle-pick"), jax.random.key(0)
    act = lambda seen: env.action_space.sample(jax.random.key(1))
    play = jax.jit(lambda key: rl.evaluate(env, act, key, 2, 5))
    scores = play(key)
    assert scores.episode_return.dtype == jnp.float64
    assert np.isfinite(scores.episode_return).all()


def test_parameters_are_leaves():
    """A batch of pendulums with different lengths is one vmap."""
    env = rl.make("pendulum", length=np.float32([0.5, 1.0, 2.0]))
    axes = type(env)(**{n: 0 if n == "length" else None for n in vars(env)})
    state, _ = rl.make("pendulum").reset(jax.random.key(0))
    step = lambda env: env.step(state, jnp.zeros(1), jax.random.key(0)).state.angular_velocity
    w = jax.jit(jax.vmap(step, (axes,)))(env)
    assert len(set(w.tolist())) == 3


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(ValueError, match="no environment 'cartpol'; did you mean cartpole"):
        rl.make("cartpol")
    with pytest.raises(ValueError, match="its parameters are gravity, cart_mass"):
        rl.make("cartpole", gravty=1.0)


def test_step_checks_the_action():
    env = rl.add_checks(rl.make("pendulum"))
    state, _ = env.reset(jax.random.key(0))
    with pytest.raises(ValueError, match="step: action holds nan"):
        env.step(state, np.float32([np.nan]), jax.random.key(0))


def test_what_is_checked_has_the_scene_of_what_it_checks():
    env = rl.add_checks(rl.make("pendulum"))
    state, _ = jax.eval_shape(env.reset, jax.random.key(0))
    assert jax.eval_shape(env.scene, state).start.shape[1] == 3
    assert not hasattr(rl.add_checks(SimpleNamespace(reset=env.reset)), "scene")
