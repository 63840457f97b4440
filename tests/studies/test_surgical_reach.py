"""The study `surgical-reach`: what it finds at a tenth of its size, its statistics."""

import base64
import io

import av
import numpy as np
import pytest
import scipy.stats

from jaxgpu import report
from jaxgpu.studies import surgical_reach
from jaxgpu.studies.surgical_reach import races


@pytest.mark.slow
def test_ppo_learns_to_reach_and_the_report_has_its_curves_and_its_film(monkeypatch, tmp_path):
    """Of 81,920 steps; in the pilot, a longer training, PPO was at 80 % after as many."""
    monkeypatch.setattr(surgical_reach.pictures, "SIZE", 32)  # pixels
    options = surgical_reach.Options(steps=100_000, seeds=3)
    found = surgical_reach.study(options, tmp_path, False)
    ends = {row[0]: row for row in found.tables[0].rows}
    assert list(ends) == ["PPO", "SHAC", "ES"]
    assert ends["PPO"][2] > 40 and ends["PPO"][1] == 81_920
    with av.open(io.BytesIO(base64.b64decode(found.figures[0].data))) as film:
        frames = list(film.decode(video=0))
    assert frames[0].width == frames[0].height == 32 and len(frames) == 99
    report.save(tmp_path, "surgical-reach", options, found)
    assert report.write(tmp_path).read_text().count("<img") == 1


def test_curves_are_interquartile_means_of_the_shares_reached():
    errors = np.random.default_rng(0).uniform(0, 10, (4, 8, races.GOALS)).astype(np.float32)
    shares = races.curve(errors, 5.0)
    want = scipy.stats.trim_mean((errors < 5).mean(2), 0.25, axis=1)
    np.testing.assert_allclose(shares[:, 0], want, rtol=1e-6)
    assert np.all((shares[:, 1] <= want) & (want <= shares[:, 2]))


def test_every_learner_gets_its_share_of_the_steps():
    steps = {name: racer.steps(1_000_000) for name, racer in races.RACERS.items()}
    for name, share in (("PPO", 1e6), ("SHAC", 2e5), ("ES", 5e6)):
        assert abs(steps[name] - share) < 0.1 * share
