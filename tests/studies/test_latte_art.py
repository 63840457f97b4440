"""The study `latte-art`: its report at small size, and the benefit of gradients."""

import pytest

from jaxgpu import report
from jaxgpu.studies import latte_art


@pytest.mark.slow
@pytest.mark.release
def test_the_study_reports_and_gradients_draw_part_of_the_picture(tmp_path):
    options = latte_art.Options(calls=8, planners=2, size="small")
    found = latte_art.study(options, tmp_path, False)
    scores = {row[0]: row[1] for row in found.tables[0].rows}
    assert abs(scores["holding still"]) < 1e-4 < 0.15 < scores["Adam, growing window"] < 1
    assert abs(scores["first guess"]) < 1e-4 < scores["CEM"]
    report.save(tmp_path, "latte-art", options, found)
    page = report.write(tmp_path).read_text()
    assert "video/mp4" in page and "image/svg+xml" in page
