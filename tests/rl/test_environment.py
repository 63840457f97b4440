"""Environments by name, and the protocol that all keep."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from conformance import avals, check_program, exports, same
from doors import as_users

from jaxgpu import rl
from jaxgpu.rl.envs.locomotion import Robot

TASKS = [name for name in rl.names() if not name.startswith("matter/")]
ROBOTS = {name for name in TASKS if isinstance(rl.make(name), Robot)}


def marked(name):
    """Tasks of matter, touch and on robots take seconds to trace: one of each kind is not slow."""
    slow = name.startswith("matter/") and name != "matter/mixing"
    slow |= name in ROBOTS and name != "reacher"
    slow |= name.startswith("touch/") and name != "touch/peg-insertion"
    return pytest.param(name, id=name, marks=pytest.mark.slow if slow else ())


@pytest.mark.parametrize("name", [marked(name) for name in rl.names()])
def test_every_environment_keeps_the_protocol(name):
    env = rl.make(name)
    assert isinstance(env, rl.Environment)
    key = jax.random.key(0)
    with as_users():
        state, observation = jax.eval_shape(env.reset, key)
        action = jax.eval_shape(env.action_space.sample, key)
        step = jax.eval_shape(env.step, state, action, key)
    assert avals(step.state) == avals(state)
    assert avals(step.observation) == avals(observation)
    assert observation.shape == env.observation_space.shape
    assert step.reward.shape == () and step.terminated.dtype == step.truncated.dtype == bool
    assert step.info["success"].dtype == bool
    assert isinstance(env.differentiable, bool)


@pytest.mark.parametrize("name", [marked(name) for name in rl.names()])
def test_every_environment_runs_with_64_bit_types(x64, name):
    """The state keeps its types; tasks of matter keep 32-bit ones, the others take 64-bit ones.

    Five of them began with 32-bit numbers and came to 64-bit ones in a step, which no loop takes.
    """
    with as_users():
        env, key = rl.make(name), jax.random.key(0)
        state, observation = jax.eval_shape(env.reset, key)
        action = jax.eval_shape(env.action_space.sample, key)
        step = jax.eval_shape(env.step, state, action, key)
    assert avals((step.state, step.observation)) == avals((state, observation))
    wide = jnp.float32 if name.startswith("matter/") else jnp.float64
    assert observation.dtype == step.reward.dtype == wide


@pytest.mark.parametrize("name", [marked(name) for name in rl.names()])
def test_a_vector_of_actions_of_another_length_is_refused(name):
    """An index beyond the end of an array gives its last number: 13 tasks answered."""
    space = rl.make(name).action_space
    if not isinstance(space, rl.Box):
        return
    step, key, (count,) = rl.make(name).step, jax.random.key(0), space.shape
    for wrong in (jnp.zeros(count - 1), jnp.zeros(count + 1), jnp.zeros((2, count))):
        with pytest.raises(ValueError, match="step: action has shape"):
            step(None, wrong, key)
        with pytest.raises(ValueError, match="step: action has shape"):
            jax.eval_shape(step, None, wrong, key)
    with pytest.raises(ValueError, match="step: action=nan"):
        step(None, jnp.full(count, jnp.nan), key)


# one of each kind; the others are like one of them
QUICK = {
    "cartpole",
    "mountain-car-continuous",
    "pendulum",
    "surgical/ecm-reach",
    "surgical/ecm-reach-compat",
    "surgical/needle-pick",
}


def dear(name):
    return pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)


def reset(env, key):
    return env.reset(key)


def step(env, state, action, key):
    return env.step(state, action, key)


@pytest.mark.parametrize("name", sorted(QUICK))
def test_an_environment_is_one_program_for_all_numbers_and_copies(name):
    """The environment is an argument; two copies in one `vmap` are two steps."""
    env = rl.make(name)
    keys = jax.random.split(jax.random.key(0))
    states, _ = jax.jit(jax.vmap(reset, (None, 0)))(env, keys)
    actions = jnp.stack([env.action_space.sample(key) for key in keys])
    mapped = jax.jit(jax.vmap(step, (None, 0, 0, 0)))(env, states, actions, keys)
    single = jax.jit(step)
    for i in range(2):
        state, lane = (jax.tree.map(lambda x, i=i: x[i], tree) for tree in (states, mapped))
        same(lane, single(env, state, actions[i], keys[i]), 1e-5)


@pytest.mark.parametrize("name", [dear(name) for name in rl.names()])
def test_every_environment_is_one_program_for_all_numbers_and_platforms(name):
    """The environment is an argument of what is lowered for three platforms."""
    env, key = rl.make(name), jax.random.key(0)
    with as_users():
        state, _ = jax.eval_shape(reset, env, key)
        action = env.action_space.sample(key)
        check_program(step, env, state, action, key)
        exports(step, env, state, action, key)
        exports(reset, env, key)


@pytest.mark.parametrize("name", ["surgical/needle-pick", "surgical/star-reach-compat"])
def test_episodes_are_played_with_64_bit_types(x64, name):
    """And are those of 32-bit numbers: keys alone decide what is random."""
    env, key = rl.make(name), jax.random.key(0)
    act = lambda seen: env.action_space.sample(jax.random.key(1))
    play = jax.jit(lambda key: rl.evaluate(env, act, key, 2, 5))
    scores = play(key)
    assert scores.episode_return.dtype == jnp.float64 and bool(
        jnp.all(jnp.isfinite(scores.episode_return))
    )


def test_parameters_are_leaves():
    """A batch of pendulums with different lengths is one vmap."""
    env = rl.make("pendulum", length=jnp.array([0.5, 1.0, 2.0]))
    axes = type(env)(**{n: 0 if n == "length" else None for n in vars(env)})
    state, _ = rl.make("pendulum").reset(jax.random.key(0))
    step = lambda env: env.step(state, jnp.zeros(1), jax.random.key(0)).state.angular_velocity
    w = jax.vmap(step, (axes,))(env)
    assert len(set(w.tolist())) == 3


def test_unknown_names_come_with_the_nearest():
    with pytest.raises(ValueError, match="no environment 'cartpol'; did you mean cartpole"):
        rl.make("cartpol")
    with pytest.raises(ValueError, match="its parameters are gravity, cart_mass"):
        rl.make("cartpole", gravty=1.0)


def test_step_checks_the_action():
    env = rl.checked(rl.make("pendulum"))
    state, _ = env.reset(jax.random.key(0))
    with pytest.raises(ValueError, match="step: action holds nan"):
        env.step(state, jnp.array([jnp.nan]), jax.random.key(0))


def test_what_is_checked_has_the_scene_of_what_it_checks():
    env = rl.checked(rl.make("swimmer"))
    assert env.scene(env.reset(jax.random.key(0))[0]).start.shape[1] == 3
    assert not hasattr(rl.checked(SimpleNamespace(reset=env.reset)), "scene")
