"""The study `peg-by-touch`: its findings on trainings, and a small version of all of it."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from line_task import Line, film_of_zeros, sweep_of_zeros

from jaxgpu import rl
from jaxgpu.studies import peg_by_touch
from jaxgpu.studies.peg_by_touch import Options


def test_the_first_measurement_from_which_the_median_stays_counts():
    """A median that falls again does not count as reached."""
    options = Options(steps=1_024_000)
    what = peg_by_touch.course(options, "reduced", peg_by_touch.TEACHER)
    history = np.zeros((11, 3))
    history[4:, :2], history[6] = 0.95, 0.5
    steps_to = lambda history: peg_by_touch._steps_to_target(
        (what, SimpleNamespace(history=history)), options
    )
    assert steps_to(history) == "0.72 million" and steps_to(0 * history) == "none"
    assert steps_to(0 * history + 1) == "0 million"


def test_students_feel_and_their_critics_know():
    """The teacher's critic fits both students, and requested variations are applied."""
    options = Options(augmentation=0.5, copies=8)
    env = lambda kind, who: peg_by_touch.course(options, kind, who).env
    felt = env("force", peg_by_touch.STUDENT)
    assert felt.place_error == 5e-4 and felt.friction_spread == 0.25
    assert peg_by_touch.course(Options(), "force", peg_by_touch.STUDENT).env.friction_spread == 0.2
    shrink = lambda who: replace(who, num_envs=8)

    def init_student(key):
        teacher = shrink(peg_by_touch.TEACHER)
        critic = teacher.critic_of(teacher.init(env("reduced", teacher), key))
        student = replace(shrink(peg_by_touch.STUDENT), critic=critic)
        return student.init(felt, key)

    params = jax.eval_shape(init_student, jax.random.key(0)).params["params"]
    inputs = {name: params[name]["Dense_0"]["kernel"].shape[0] for name in ("actor", "critic")}
    assert inputs == {"actor": 25 + 8 * 7 * 6, "critic": 25 + 31}


def test_a_report_tells_of_the_teacher_and_its_students(monkeypatch, tmp_path):
    """The task and the trainings are fakes that take a moment."""
    monkeypatch.setattr(rl, "sweep", sweep_of_zeros)
    make = lambda name, observation, **told: Line(observation)
    monkeypatch.setattr(rl, "make", make)
    monkeypatch.setattr(peg_by_touch.pictures, "video", film_of_zeros)
    options = Options(steps=50_000, seeds=3, episodes=4)
    found = peg_by_touch.study(options, tmp_path, False)
    (table,) = found.tables
    steps = [[1, 40_960], *3 * [[3, 40_960]], [3, 20_480]]
    assert [row[1:3] for row in table.rows] == steps
    assert [figure.mime for figure in found.figures] == ["video/mp4", "image/svg+xml"]


@pytest.mark.slow
@pytest.mark.release
def test_a_little_of_it_ends_in_a_report(tmp_path):
    options = Options(steps=50_000, seeds=3, episodes=4)
    found = peg_by_touch.study(options, tmp_path, False)
    steps = [[1, 40_960], *3 * [[3, 40_960]], [3, 20_480]]
    assert [row[1:3] for row in found.tables[0].rows] == steps
