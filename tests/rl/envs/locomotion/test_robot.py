"""What all tasks on robots keep: starts, objectives, the clock, and numbers that are leaves."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doors import as_users

from jaxgpu import rl

KEY = jax.random.key(0)
# of each the objectives by parts of its reward, and what the square of the action weighs in them
OBJECTIVES = {
    "half-cheetah": [("reward_forward",), ("reward_ctrl",)],
    "swimmer": [("reward_forward",), ("reward_ctrl",)],
    "walker2d": [("reward_forward", "reward_survive"), ("effort", "reward_survive")],
    "hopper": [
        ("reward_forward", "reward_survive"),
        ("rise", "reward_survive"),
        ("effort", "reward_survive"),
    ],
    "ant": [("reward_forward", "reward_survive"), ("reward_ctrl", "reward_contact")],
    "humanoid": [("reward_forward", "reward_survive"), ("effort", "reward_survive")],
    "humanoid-standup": [("reward_linup",), ("reward_quadctrl",)],
    "reacher": [("reward_dist",), ("reward_ctrl",)],
    "inverted-double-pendulum": [
        ("reward_survive", "distance_penalty"),
        ("reward_survive", "velocity_penalty"),
    ],
}


def dear(name, *others):
    """Every robot is compiled for seconds: two in the fast tier."""
    quick = name in ("hopper", "reacher")
    return pytest.param(name, *others, marks=() if quick else pytest.mark.slow)


@pytest.fixture(autouse=True)
def users():
    """The settings of users: ranks are promoted."""
    with as_users():
        yield


def moved(env):
    """A state, another one, and an action between them."""
    key = jax.random.key(1)
    before, after = (jax.jit(env.reset)(k)[0] for k in jax.random.split(key))
    seen = {name: x + 0.1 for name, x in after.seen.items()}
    return before, replace(after, seen=seen), env.action_space.sample(key)


@pytest.mark.parametrize("name", [dear(name) for name in OBJECTIVES])
def test_objectives_are_sums_of_parts(name):
    env = rl.make(name)
    before, after, action = moved(env)
    parts, objectives = env._rewards(before, after, action)
    parts |= {"effort": -jnp.sum(action**2), "rise": 10 * (after.body.qpos[1] - 1.25)}
    want = [sum(float(parts[part]) for part in sums) for sums in OBJECTIVES[name]]
    np.testing.assert_allclose(objectives, want, rtol=1e-5, atol=1e-6)


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
    """At a speed of 2 m/s, with an action whose square is 1 and forces whose square is 9."""
    names = "forward_reward_weight ctrl_cost_weight healthy_reward contact_cost_weight".split()
    env = rl.make(name, **dict(zip(names, weights)))
    rest = np.array(env.model.qpos0)
    standing = SimpleNamespace(qpos=rest, qvel=np.zeros(env.model.layout.nv))
    gone = np.r_[rest[0] + 2 * env._dt(), rest[1:]]
    forces = np.r_[[3.0], np.zeros(5)][None]
    seen = lambda x: {"place": np.array([x, 0.0]), "contact": forces}
    before = SimpleNamespace(body=standing, seen=seen(0.0))
    body = SimpleNamespace(qpos=gone, qvel=standing.qvel)
    after = SimpleNamespace(body=body, seen=seen(2 * env._dt()))
    found, _ = env._rewards(before, after, np.r_[0.6, 0.8, np.zeros(env.model.layout.nu - 2)])
    assert found.keys() == {f"reward_{part}" for part in parts}
    for part, want in parts.items():
        np.testing.assert_allclose(found[f"reward_{part}"], want, rtol=1e-4)


@pytest.mark.slow
def test_objectives_of_pushing_have_no_weights():
    env = rl.make("pusher")
    before, after, action = moved(env)
    parts, objectives = env._rewards(before, after, action)
    want = 2 * parts["reward_near"], parts["reward_dist"], 10 * parts["reward_ctrl"]
    np.testing.assert_allclose(objectives, want, rtol=1e-5)


@pytest.mark.parametrize("name, count", [dear("reacher", 2), dear("hopper", 3)])
def test_rewards_are_vectors_where_they_are_asked_for(name, count):
    env = rl.make(name, vector=True)
    state, _ = jax.eval_shape(env.reset, KEY)
    step = jax.eval_shape(env.step, state, jnp.zeros(env.action_space.shape), KEY)
    assert step.reward.shape == (count,)


def starts(name, count=256):
    env = rl.make(name)
    return env, jax.jit(jax.vmap(env.reset))(jax.random.split(KEY, count))[0].body


@pytest.mark.parametrize(
    "name, q, v",
    [
        dear("hopper", 0.005, 0.005),
        dear("swimmer", 0.1, 0.1),
        dear("half-cheetah", 0.1, None),
    ],
)
def test_starts_are_within_the_noise_of_rest(name, q, v):
    """Velocities of some tasks are normal: their deviation is 0.1 to 3 parts in a hundred."""
    env, body = starts(name)
    away = np.abs(body.qpos - env.model.qpos0)
    assert 0.95 * q < away.max() <= q
    if v is None:
        np.testing.assert_allclose(np.std(body.qvel), 0.1, rtol=0.1)
    else:
        assert 0.95 * v < np.abs(body.qvel).max() <= v


def test_targets_of_the_reacher_fill_a_disc():
    """Half of the targets lie within the radius that holds half of the area."""
    _, body = starts("reacher", 4096)
    far = np.linalg.norm(body.qpos[:, 2:], axis=1)
    assert far.max() < 0.2
    np.testing.assert_allclose(np.mean(far < 0.2 / np.sqrt(2)), 0.5, atol=4 * 0.5 / 64)
    assert not body.qvel[:, 2:].any() and np.abs(body.qvel[:, :2]).max() <= 0.005


@pytest.mark.slow
def test_the_object_of_the_pusher_starts_away_from_the_goal():
    _, body = starts("pusher", 4096)
    place = np.asarray(body.qpos[:, -4:-2])
    assert np.linalg.norm(place, axis=1).min() > 0.17
    assert (place > [-0.3, -0.2]).all() and (place < [0, 0.2]).all()
    assert not body.qpos[:, -2:].any() and not body.qvel[:, -4:].any()


@pytest.mark.slow
def test_masses_are_leaves_and_the_clock_truncates():
    """Copies of a reacher with other masses are one vmap; heavier links turn less."""
    env = rl.make("reacher", max_steps=1)
    state, _ = env.reset(KEY)

    def step(heavier):
        mass = env.model.bodies.mass * heavier
        bodies = replace(env.model.bodies, mass=mass, inertia=env.model.bodies.inertia * heavier)
        heavy = replace(env, model=replace(env.model, bodies=bodies))
        return heavy.step(state, jnp.ones(2), KEY)

    after = jax.jit(jax.vmap(step))(jnp.array([1.0, 30.0, 1000.0]))
    speed = np.abs(after.state.body.qvel[:, 0])
    assert speed[0] > speed[1] > speed[2] > 0
    assert after.truncated.all() and not after.terminated.any()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hopper", "reacher"])
def test_rewards_have_derivatives_in_actions(x64, name):
    """Those of central differences, to 1e-5; the same contacts act on both sides."""
    env = rl.make(name)
    state, _ = env.reset(KEY)
    paid = jax.jit(lambda a: env.step(state, a, KEY).reward)
    action = 0.3 * jnp.ones(env.action_space.shape)
    slope = jax.jit(jax.grad(lambda a: env.step(state, a, KEY).reward))(action)
    for k, one in enumerate(np.eye(len(action)) * 1e-5):
        want = (paid(action + one) - paid(action - one)) / 2e-5
        np.testing.assert_allclose(slope[k], want, rtol=1e-5, atol=1e-7)


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
