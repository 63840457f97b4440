"""The study `latte-art`: what it refuses, its report at small size, and that gradients pay."""

import pytest

from jaxgpu import report
from jaxgpu.studies import latte_art


@pytest.mark.parametrize(
    "option, sentence",
    [
        ({"calls": 12}, "calls: 12; must be a multiple of 8"),
        (
            {"planners": 1},
            "Options.planners=1; it must be a whole number of at least 2 and of at most 3",
        ),
        ({"rate": 0.0}, "Options.rate=0; it must be a finite number above 0 and of at most 1"),
        ({"size": "huge"}, "size: 'huge'; must be small or full"),
    ],
)
def test_bad_options_get_a_sentence(option, sentence):
    with pytest.raises(ValueError, match=sentence):
        latte_art.Options(**option)


@pytest.mark.slow
def test_the_study_reports_and_gradients_draw_part_of_the_picture(tmp_path):
    options = latte_art.Options(calls=8, planners=2, size="small")
    found = latte_art.study(options, tmp_path, False)
    scores = {row[0]: row[1] for row in found.tables[0].rows}
    assert abs(scores["holding still"]) < 1e-4 < 0.15 < scores["Adam, growing window"] < 1
    assert abs(scores["first guess"]) < 1e-4 < scores["CEM"]
    report.save(tmp_path, "latte-art", options, found)
    page = report.write(tmp_path).read_text()
    assert "video/mp4" in page and "image/svg+xml" in page
