"""The study `pour`: its report, and that planning pays."""

import pytest

from jaxgpu import report
from jaxgpu.studies import pour


@pytest.mark.slow
def test_the_study_reports_and_gradients_improve_on_the_guess(tmp_path):
    options = pour.Options(calls=8, seeds=1, planners=2)
    found = pour.study(options, tmp_path, False)
    scores = {row[0]: row[1] for row in found.tables[0].rows}
    assert list(scores) == ["holding still", "random", "first guess", "Adam", "CEM"]
    assert abs(scores["holding still"]) < 0.02 < scores["first guess"] < scores["Adam"] - 0.1
    report.save(tmp_path, "pour", options, found)
    page = report.write(tmp_path).read_text()
    assert "video/mp4" in page and "image/svg+xml" in page
