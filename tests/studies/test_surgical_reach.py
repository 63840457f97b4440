"""The study `surgical-reach`: its findings at a tenth of its size, and its statistics."""

import base64
import io

import av
import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.stats
from matplotlib.colors import to_rgb

from jaxgpu import report, rl
from jaxgpu.runs.loop import Run, Timing
from jaxgpu.studies import surgical_reach
from jaxgpu.studies.surgical_reach import races

ENDS = {"PPO": 2.0, "SHAC": 4.0, "ES": 9.0}  # mm


@pytest.mark.slow
def test_a_report_has_the_curves_of_all_learners_and_a_film_of_the_best(monkeypatch, tmp_path):
    """The trainings are replaced: initial policies, and errors of 2, 4 and 9 mm."""
    env, keys = rl.Reach(), jax.random.split(jax.random.key(0), 3)

    def give_training(name, seeds, steps, seed, out, resume):
        init = races.RACERS[name].learner.init
        state = jax.jit(jax.vmap(lambda key: init(env, key, 10)))(keys)
        errors = np.full((1 + races.MEASUREMENTS, seeds, races.GOALS), ENDS[name], np.float32)
        return Run(state, errors, Timing(1.0, 1.0, 1))

    monkeypatch.setattr(races, "race", give_training)
    monkeypatch.setattr(surgical_reach.pictures, "SIZE", 32)  # pixels
    options = surgical_reach.Options(steps=100_000, seeds=3)
    found = surgical_reach.study(options, tmp_path, False)
    ends = {row[0]: row[1:3] for row in found.tables[0].rows}
    assert list(ends) == ["PPO", "SHAC", "ES"] and ends["PPO"] == [81_920, 100.0]
    assert ends["ES"][1] == 0 and found.lead.startswith("PPO brings the tip")
    with av.open(io.BytesIO(base64.b64decode(found.figures[0].data))) as film:
        frames = list(film.decode(video=0))
    assert frames[0].width == frames[0].height == 32 and len(frames) == 99
    report.save(tmp_path, "surgical-reach", options, found)
    assert report.write(tmp_path).read_text().count("<img") == 1


@pytest.mark.slow
@pytest.mark.release
def test_ppo_learns_to_reach(tmp_path):
    """Train for 81,920 steps; in a longer pilot run, PPO reached 80 % after as many."""
    run = races.race("PPO", 3, 100_000, 0, tmp_path, False)
    assert 100 * races.curve(run.history[1:], 5.0)[-1, 0] > 40


def test_curves_are_interquartile_means_of_the_shares_reached():
    errors = np.random.default_rng(0).uniform(0, 10, (4, 8, races.GOALS)).astype(np.float32)
    shares = races.curve(errors, 5.0)
    want = scipy.stats.trim_mean((errors < 5).mean(2), 0.25, axis=1)
    np.testing.assert_allclose(shares[:, 0], want, rtol=1e-6)
    assert np.all((shares[:, 1] <= want) & (want <= shares[:, 2]))


def test_curves_are_drawn_in_their_units_on_a_page_that_is_wider_than_high():
    steps = {"PPO": np.array([1e3, 1e4, 1e5]), "ES": np.array([5e3, 5e4, 5e5])}
    random = np.random.default_rng(1)
    shares = {name: np.sort(random.uniform(size=(3, 3)))[:, [1, 0, 2]] for name in steps}
    errors = {name: random.uniform(1, 90, (3, 5, 7)) for name in steps}
    drawing = surgical_reach.pictures.curves(steps, shares, errors)
    plt.close(drawing)
    width, height = drawing.get_size_inches()
    assert height < width <= 9.4  # the page's
    reached, error = drawing.axes
    for i, (name, x) in enumerate(steps.items()):
        for axes in drawing.axes:
            np.testing.assert_array_equal(axes.lines[i].get_xdata(), x)
        np.testing.assert_allclose(reached.lines[i].get_ydata(), 100 * shares[name][:, 0])
        of_seeds = np.sort(np.sort(errors[name], 2)[:, :, 3], 1)  # the fourth of seven goals
        np.testing.assert_allclose(error.lines[i].get_ydata(), of_seeds[:, 2])
        for axes, low, high in (
            (reached, 100 * shares[name][:, 1], 100 * shares[name][:, 2]),
            (error, of_seeds[:, 0], of_seeds[:, -1]),
        ):
            band = axes.collections[i].get_datalim(axes.transData)
            np.testing.assert_allclose((band.y0, band.y1), (low.min(), high.max()))
            shade = axes.collections[i].get_facecolor()[0, :3]
            np.testing.assert_allclose(shade, to_rgb(axes.lines[i].get_color()))
    least, most = reached.get_ylim()
    assert least <= 0 and most >= 100
    assert error.lines[2].get_ydata()[0] == 5 and error.get_yscale() == "log"
    assert reached.get_xscale() == error.get_xscale() == "log"
    assert [text.get_text() for text in error.get_legend().get_texts()] == list(steps)


def test_every_learner_gets_its_share_of_the_steps():
    steps = {name: racer.steps(1_000_000) for name, racer in races.RACERS.items()}
    for name, share in (("PPO", 1e6), ("SHAC", 2e5), ("ES", 5e6)):
        assert abs(steps[name] - share) < 0.1 * share
