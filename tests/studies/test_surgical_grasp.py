"""The study `surgical-grasp`: its learners, its video, and a small version of all of it."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from line_task import Approach, Line, film_of_zeros, sweep_of_zeros

from jaxgpu import rl
from jaxgpu.inputs.fields import pytree
from jaxgpu.studies import surgical_grasp


@pytree
class Scripted(Line):
    """A task whose class has the script, as tasks with contact do."""

    script = staticmethod(lambda env, observation: Approach()(observation))


def test_a_report_tells_of_trainings_by_contact_and_without(monkeypatch, tmp_path):
    """The task and the trainings are fakes that take a moment."""
    monkeypatch.setattr(rl, "sweep", sweep_of_zeros)
    monkeypatch.setitem(surgical_grasp.TASKS, "needle-pick", Scripted)
    monkeypatch.setattr(rl, "make", lambda name, shaping: Line())
    monkeypatch.setattr(surgical_grasp, "video", film_of_zeros)
    options = surgical_grasp.Options(steps=20_000, seeds=3, episodes=4)
    found = surgical_grasp.study(options, tmp_path, False)
    contact, rule = found.tables[0].rows
    assert contact[:4] == ["contact physics, DAgger", 3, 20_480, 100.0]
    assert rule[:4] == ["attachment rule, PPO", 3, 204_800, 100.0]
    assert "DAgger succeeds in 100 % of 4" in found.lead
    assert [figure.mime for figure in found.figures] == ["video/mp4", "image/svg+xml"]


@pytest.mark.slow
def test_its_learners_fit_its_tasks_and_a_film_shows_them(monkeypatch):
    contact = surgical_grasp.contact_course(surgical_grasp.Options())
    for course in (
        contact,
        surgical_grasp.rule_course(surgical_grasp.Options(task="peg-transfer")),
    ):
        assert jax.eval_shape(partial(course.learner.init, course.env), jax.random.key(0)).params
    env = contact.env
    monkeypatch.setattr(surgical_grasp, "TRAY", replace(surgical_grasp.TRAY, width=32, height=32))
    film_still = lambda env, policy, key, length: jax.tree.map(
        lambda x: jnp.stack([x, x]), replace(jax.jit(env.reset)(key)[0], t=jnp.int32(2))
    )
    monkeypatch.setattr(surgical_grasp, "record_episode", film_still)
    assert surgical_grasp.video(env, None, jax.random.key(0)).mime == "video/mp4"
