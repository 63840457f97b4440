"""The study `pour`: what it refuses, its report, and that planning pays."""

import pytest

from jaxgpu import report
from jaxgpu.studies import pour


@pytest.mark.parametrize(
    "option, sentence",
    [
        ({"calls": 12}, "calls: 12; must be a multiple of 8"),
        ({"seeds": 0}, "Options.seeds=0; it must be a whole number of at least 1"),
        ({"size": "huge"}, "size: 'huge'; must be small or full"),
    ],
)
def test_bad_options_get_a_sentence(option, sentence):
    with pytest.raises(ValueError, match=sentence):
        pour.Options(**option)


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
