"""The study `peg-insertion`: its images, and a small version of all of it."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from line_task import Line, film_of_zeros, sweep_of_zeros

from jaxgpu import report, rl
from jaxgpu.studies import peg_insertion
from jaxgpu.studies.peg_insertion import pictures


def test_a_taxel_that_is_pressed_is_bright_where_it_lies_on_its_pad():
    """The first taxel of the second pad is at its lower end: of 16 rows the last, of 7 columns."""
    env = rl.make("touch/peg-insertion")
    shapes = jax.eval_shape(env.reset, jax.random.key(0))[0]
    state = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    field = jnp.zeros_like(state.grasp.field)
    drawn = jax.jit(lambda state: pictures.pads(env, state))
    dark = drawn(replace(state, grasp=replace(state.grasp, field=field)))
    assert not np.any(dark)
    field = field.at[1, 0, 1].set(-1.0)
    seen = drawn(replace(state, grasp=replace(state.grasp, field=field)))
    rows, columns = (np.flatnonzero(np.any(np.asarray(seen), (2, axis))) for axis in (1, 0))
    assert rows.tolist() == list(range(338, 360)) and columns.tolist() == list(range(52))
    assert len(np.unique(np.asarray(seen)[338:, :52])) == 1  # no shear: grey


@pytest.mark.parametrize(("taught", "steps"), [(False, 10_240), (True, 9_984)])
def test_a_report_tells_of_trainings_by_rewards_or_by_the_script(
    taught, steps, monkeypatch, tmp_path
):
    """An update has 8 x 32 steps by PPO, 8 x 16 by DAgger; the task takes a moment."""
    monkeypatch.setattr(rl, "sweep", sweep_of_zeros)
    monkeypatch.setattr(rl, "make", lambda name, max_steps: Line())
    monkeypatch.setattr(pictures, "video", film_of_zeros)
    sizes = {"steps": 10_000, "copies": 8, "seeds": 3, "episodes": 4, "measurements": 2}
    found = peg_insertion.study(peg_insertion.Options(taught=taught, **sizes), tmp_path, False)
    (row,) = found.tables[0].rows
    assert row[:3] == [3, steps, 100.0]
    assert list(found.timing) == ["DAgger" if taught else "PPO"]
    assert [figure.mime for figure in found.figures] == ["video/mp4", "image/svg+xml"]


@pytest.mark.slow
def test_its_learners_fit_its_task_and_a_film_shows_the_hand_beside_its_pads(monkeypatch):
    for taught in (False, True):
        course = peg_insertion.course(peg_insertion.Options(taught=taught, copies=8))
        state = jax.eval_shape(partial(course.learner.init, course.env), jax.random.key(0))
        assert state.params
    start = jax.jit(course.env.reset)(jax.random.key(0))[0]
    film_still = lambda env, policy, key, length: jax.tree.map(lambda x: jnp.stack([x] * 4), start)
    monkeypatch.setattr(pictures, "record_episode", film_still)
    monkeypatch.setattr(pictures, "SIZE", 24)
    images = []
    monkeypatch.setattr(report, "video", lambda film, *_: images.append(film))
    pictures.video(course.env, None, jax.random.key(0))
    assert images[0].shape == (1, 24, 48, 3)
