"""The study `double-pendulum`: its parts against reference values, and its report."""

import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.studies import double_pendulum as study


def test_growth_finds_the_exponent_of_an_exponential_and_no_more():
    times = np.linspace(0, 20, 400)
    spread = np.minimum(1e-9 * np.exp(1.5 * times), 2.0)
    exponent, line = study.growth(times, spread)
    assert exponent == pytest.approx(1.5, rel=1e-9)
    np.testing.assert_allclose(line[:100], spread[:100], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.release
def test_the_study_agrees_with_what_is_known(tmp_path):
    options = study.Options(pendulums=50, seconds=10)
    found = study.study(options, tmp_path, False)
    slow, fast, slope, order = found.tables[0].rows
    assert slow[1] == pytest.approx(slow[2], rel=2e-5)
    assert fast[1] == pytest.approx(fast[2], rel=2e-4)
    assert slope[1] == pytest.approx(slope[2], rel=1e-7)
    assert order[1] == pytest.approx(2, rel=0.2)
    report.save(tmp_path, "double-pendulum", options, found)
    assert report.write(tmp_path).read_text().count("<iframe") == 1
