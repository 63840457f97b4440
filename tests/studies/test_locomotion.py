"""The study `locomotion`: a short training of a robot, and its rows."""

import re
from functools import partial

import jax
import pytest
from line_task import Line, sweep_of_zeros

from jaxgpu import rl
from jaxgpu.inputs import ranges
from jaxgpu.studies import locomotion
from jaxgpu.studies.classic_control.scores import PARTS


def test_a_report_tells_of_the_rows_that_were_asked_for(monkeypatch, tmp_path):
    """The task and the trainings are fakes that take a moment."""
    monkeypatch.setattr(rl, "sweep", sweep_of_zeros)
    monkeypatch.setattr(rl, "make", lambda name: Line())
    found = locomotion.study(locomotion.Options(share=0.01), tmp_path, False)
    (row,) = found.tables[0].rows
    assert row[:3] == ["half-cheetah, PPO", 20_480, 1.0]


def test_its_learners_keep_their_ranges():
    for row in locomotion.ROWS:
        ranges.check("locomotion", row.learner)


def test_rollouts_are_as_long_as_published_and_the_ant_is_trained_as_the_report_says():
    """Tianshou's and Baselines' PPO collect 2048 steps in each update."""
    learners = {row.name: row.learner for row in locomotion.ROWS if isinstance(row.learner, rl.PPO)}
    assert {one.steps_per_update for one in learners.values()} == {2048}
    ant = learners.pop("ant, PPO")
    rate, decay = re.search(
        r"rate of (\S+) and a lambda of ([0-9.]+)\.", locomotion.FINDINGS[1]
    ).groups()
    assert (ant.learning_rate, ant.gae_lambda) == (float(rate), float(decay))
    assert all(one == next(iter(learners.values())) != ant for one in learners.values())


@pytest.mark.slow
def test_its_learners_fit_its_robots():
    made = {row.task: rl.make(row.task) for row in locomotion.ROWS}
    for row in locomotion.ROWS:
        state = jax.eval_shape(partial(row.learner.init, made[row.task]), jax.random.key(0))
        assert state.params


@pytest.mark.slow
@pytest.mark.release
def test_a_half_cheetah_learns_to_move_in_a_tenth_of_the_steps(tmp_path):
    options = locomotion.Options(share=0.05)
    found = locomotion.study(options, tmp_path, False)
    (row,) = found.tables[0].rows
    assert row[0] == "half-cheetah, PPO" and 3e4 < row[1] < 7e4
    assert row[2] > 0  # at random it loses some 280


def test_every_robot_gets_its_steps():
    for row in locomotion.ROWS:
        steps = PARTS * row.interval(1.0) * row.learner.steps_per_update
        assert abs(steps - row.steps) < 0.1 * row.steps, row.name
