"""Properties of all tasks on robots: starts, objectives, the time limit, and numbers as leaves."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from api_cases import as_users

from jaxgpu import rl

KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def user_settings():
    """Run a test with the settings of users, who get implicit rank promotion."""
    with as_users():
        yield


@pytest.mark.parametrize(
    "name, weights, parts",
    [
        ("half-cheetah", (3.0, 0.7), {"forward": 6, "ctrl": -0.7}),
        ("swimmer", (3.0, 0.7), {"forward": 6, "ctrl": -0.7}),
        ("walker2d", (3.0, 0.7, 5.0), {"forward": 6, "ctrl": -0.7, "survive": 5}),
        ("hopper", (3.0, 0.7, 5.0), {"forward": 6, "ctrl": -0.7, "survive": 5}),
        (
            "ant",
            (3.0, 0.7, 5.0, 0.2),
            {"forward": 6, "ctrl": -0.7, "survive": 5, "contact": -0.2 * 9},
        ),
        (
            "humanoid",
            (3.0, 0.7, 5.0, 0.2),
            {"forward": 6, "ctrl": -0.7, "survive": 5, "contact": -0.2 * 9},
        ),
    ],
)
def test_parts_of_rewards_are_weighed(name, weights, parts):
    """The velocity is 2 m/s, the squared action is 1, and the squared forces are 9."""
    names = "forward_reward_weight ctrl_cost_weight healthy_reward contact_cost_weight".split()
    env = rl.make(name, **dict(zip(names, weights)))
    rest = np.array(env.model.qpos0)
    standing = SimpleNamespace(qpos=rest, qvel=np.zeros(env.model.layout.nv))
    gone = np.r_[rest[0] + 2 * env._dt(), rest[1:]]
    forces = np.r_[[3.0], np.zeros(5)][None]
    reading = lambda x: {"place": np.array([x, 0.0]), "contact": forces}
    before = SimpleNamespace(body=standing, seen=reading(0.0))
    body = SimpleNamespace(qpos=gone, qvel=standing.qvel)
    after = SimpleNamespace(body=body, seen=reading(2 * env._dt()))
    found, _ = env._rewards(before, after, np.r_[0.6, 0.8, np.zeros(env.model.layout.nu - 2)])
    assert found.keys() == {f"reward_{part}" for part in parts}
    for part, want in parts.items():
        np.testing.assert_allclose(found[f"reward_{part}"], want, rtol=1e-4)


def test_rewards_are_vectors_where_they_are_asked_for():
    env = rl.make("reacher", vector=True)
    state, _ = jax.eval_shape(env.reset, KEY)
    step = jax.eval_shape(env.step, state, np.zeros(2, np.float32), KEY)
    assert step.reward.shape == (2,)


def starts(name, count=4096):
    """Return a task, and coordinates and velocities at the start of many episodes."""
    env = rl.make(name)
    return env, *jax.jit(jax.vmap(env._sample_start))(jax.random.split(KEY, count))


@pytest.mark.parametrize("name, q, v", [("hopper", 0.005, 0.005), ("half-cheetah", 0.1, None)])
def test_starts_are_within_the_noise_of_rest(name, q, v):
    """Velocities of some tasks are normal, with a deviation of 0.1 that is known to 3 %."""
    env, qpos, qvel = starts(name, 256)
    away = np.abs(qpos - np.asarray(env.model.qpos0))
    assert 0.95 * q < away.max() <= q
    if v is None:
        np.testing.assert_allclose(np.std(qvel), 0.1, rtol=0.1)
    else:
        assert 0.95 * v < np.abs(qvel).max() <= v


def test_targets_of_the_reacher_fill_a_disc():
    """Half of the targets are within the radius that encloses half of the area."""
    _, *start = starts("reacher")
    qpos, qvel = map(np.asarray, start)
    far = np.linalg.norm(qpos[:, 2:], axis=1)
    assert far.max() < 0.2
    np.testing.assert_allclose(np.mean(far < 0.2 / np.sqrt(2)), 0.5, atol=4 * 0.5 / 64)
    assert not qvel[:, 2:].any() and np.abs(qvel[:, :2]).max() <= 0.005


def test_the_object_of_the_pusher_starts_away_from_the_goal():
    _, qpos, qvel = starts("pusher")
    place = np.asarray(qpos)[:, -4:-2]
    assert np.linalg.norm(place, axis=1).min() > 0.17
    assert (place > [-0.3, -0.2]).all() and (place < [0, 0.2]).all()
    assert not np.asarray(qpos)[:, -2:].any() and not np.asarray(qvel)[:, -4:].any()


@pytest.mark.slow
def test_masses_are_leaves_the_clock_truncates_and_rewards_have_derivatives(x64):
    """Copies of a reacher with other masses are one vmap, and heavier links rotate less.

    The derivative of the reward by the action agrees with central differences to 1e-5.
    """
    env = rl.make("reacher", max_steps=1)

    def step(heavier, action, way):
        mass = env.model.bodies.mass * heavier
        bodies = replace(env.model.bodies, mass=mass, inertia=env.model.bodies.inertia * heavier)
        heavy = replace(env, model=replace(env.model, bodies=bodies))
        start = heavy.begin(np.array([0.3, -0.4, 0.1, 0.05]), np.array([0.1, 0.2, 0.0, 0.0]))
        reward_of = lambda action: ((out := heavy.step(start, action, KEY)).reward, out)
        return jax.jvp(reward_of, (action,), (way,), has_aux=True)

    few = {"xla_backend_optimization_level": 0}
    ways = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    actions = np.concatenate([np.ones((3, 2)), 0.3 + 1e-5 * ways])
    ways = np.concatenate([np.ones((3, 2)), ways.astype(float)])
    heavier = np.array([1.0, 30.0, 1000.0, 1.0, 1.0, 1.0, 1.0])
    paid, slope, after = jax.jit(jax.vmap(step), compiler_options=few)(heavier, actions, ways)
    speed = np.abs(after.state.body.qvel[:3, 0])
    assert speed[0] > speed[1] > speed[2] > 0
    assert after.truncated.all() and not after.terminated.any()
    paid, slope = np.asarray(paid)[3:], np.asarray(slope)[3:]
    central = (paid[[0, 2]] - paid[[1, 3]]) / 2e-5
    np.testing.assert_allclose((slope[[0, 2]] - slope[[1, 3]]) / 2, central, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "name, seen, moved",
    [
        ("hopper", 11, 3),
        ("half-cheetah", 17, 6),
        ("walker2d", 17, 6),
        ("swimmer", 8, 2),
        ("reacher", 10, 2),
        ("pusher", 23, 7),
        ("inverted-double-pendulum", 9, 1),
        ("ant", 105, 8),
        ("humanoid", 348, 17),
        ("humanoid-standup", 348, 17),
    ],
)
def test_spaces_have_the_widths_of_gymnasium(name, seen, moved):
    env = rl.make(name)
    assert env.observation_space.shape == (seen,) and env.action_space.shape == (moved,)
