"""The study `mobile-pick`: how trainings are measured, and a small version of all of it."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from line_task import Line, film_of_zeros, sweep_of_zeros

from jaxgpu import report, rl
from jaxgpu.studies import mobile_pick
from jaxgpu.studies.mobile_pick import success
from jaxgpu.studies.mobile_pick.success import PARTS, Course

PPO = rl.PPO(num_envs=8, num_steps=8, num_minibatches=1, update_epochs=1, hidden_sizes=(8,))


@pytest.mark.slow
def test_shares_of_successes_are_measured_along_the_trainings(tmp_path):
    env = Line()
    course = Course(env=env, new=env, learner=PPO, episodes=4, max_steps=5)
    keys = jax.random.split(jax.random.key(0), 3)
    run = success.train_seeds(course, 1000, keys, tmp_path / "a", False)
    assert course.interval(1000) == 2 and course.steps(1000) == 2 * 64 * PARTS
    assert run.history.shape == (1 + PARTS, 3)
    assert np.isin(4 * run.history, range(5)).all()
    (row,) = success.table("Title", run, 1280).rows
    assert row[:2] == [3, 1280] and row[2] == 100 * np.median(run.history[-1])


def test_an_episode_that_is_over_stands_still():
    """A counter that ends at three shows 1, 2 and 3, and then remains."""

    def step(state, action, key):
        over = state + action == 3
        return rl.Step(state + action, state + action, 0.0, over, jnp.bool_(False), {})

    env = SimpleNamespace(reset=lambda key: (jnp.int32(0), jnp.int32(0)), step=step)
    states = success.record_episode(env, lambda seen: jnp.int32(1), jax.random.key(0), 6)
    assert states.tolist() == [1, 2, 3, 3, 3, 3]


def test_a_policy_with_a_memory_is_played_with_it():
    """The policy moves by one more in each step: to 0, 1, 3 and 6."""

    def step(state, action, key):
        no = jnp.bool_(False)
        return rl.Step(state + action, state + action, 0.0, no, no, {})

    env = SimpleNamespace(reset=lambda key: (jnp.int32(0), jnp.int32(0)), step=step)
    policy = rl.RecurrentPolicy(jnp.int32(0), lambda memory, seen: (memory + 1, memory))
    assert success.record_episode(env, policy, jax.random.key(0), 4).tolist() == [0, 1, 3, 6]


@pytest.fixture(scope="module")
def seeing():
    return mobile_pick.course(mobile_pick.Options(homes=1, pixels=8))


@pytest.mark.slow
def test_who_sees_depth_has_a_memory_and_knows_no_map(seeing):
    assert isinstance(seeing.learner, rl.RecurrentPPO)
    assert set(seeing.env.observation_space) == {"depth", "state"}
    assert seeing.new.observation_space["depth"].shape == (8, 8, 1)
    state = jax.eval_shape(partial(seeing.learner.init, seeing.env), jax.random.key(0))
    assert any("GroupNorm" in str(at) for at, _ in jax.tree.leaves_with_path(state.params))


@pytest.mark.slow
def test_who_is_told_the_way_is_led_by_the_script_of_the_task(seeing):
    env = replace(seeing.env, pixels=0)
    learner = mobile_pick.learner(env, mobile_pick.Options())
    assert isinstance(learner, rl.KickstartedPPO) and learner.teacher_share == 0.3
    assert jax.eval_shape(partial(learner.init, env), jax.random.key(0)).params
    alone = mobile_pick.learner(env, mobile_pick.Options(led=0.0))
    assert type(alone) is rl.PPO


@pytest.mark.slow
def test_a_film_shows_the_house_beside_what_the_robot_sees(seeing, monkeypatch):
    monkeypatch.setattr(mobile_pick.pictures, "SIZE", 24)
    film_still = lambda env, policy, key, length: jax.tree.map(
        lambda x: jnp.stack([x, x]), jax.jit(env.reset)(key)[0]
    )
    monkeypatch.setattr(mobile_pick.pictures, "record_episode", film_still)
    drawn = {}
    monkeypatch.setattr(report, "video", lambda images, *_: drawn.update(shape=images.shape))
    mobile_pick.pictures.video(seeing.env, None, jax.random.key(0))
    assert drawn["shape"] == (1, 24, 48, 3)


def test_a_report_tells_of_trainings_led_by_the_script(monkeypatch, tmp_path):
    """The task and the trainings are fakes that take a moment."""
    monkeypatch.setattr(rl, "sweep", sweep_of_zeros)
    monkeypatch.setattr(mobile_pick.houses, "generate_many", lambda seeds: len(seeds))
    monkeypatch.setattr(mobile_pick.tasks, "fetch_episodes", lambda houses, skip: houses)
    monkeypatch.setattr(rl, "make", lambda name, episodes, **told: Line())
    monkeypatch.setattr(mobile_pick.pictures, "video", film_of_zeros)
    options = mobile_pick.Options(steps=100_000, homes=1, episodes=16, measurements=2)
    found = mobile_pick.study(options, tmp_path, False)
    (row,) = found.tables[0].rows
    assert row[:3] == [3, 98_304, 100.0]
    assert [figure.mime for figure in found.figures] == ["video/mp4", "image/svg+xml"]
