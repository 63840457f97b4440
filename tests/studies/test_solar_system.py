"""The study `solar-system`: its figures and its findings."""

import json

import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.studies import solar_system, studies


@pytest.fixture(scope="module")
def short_study(tmp_path_factory):
    out = tmp_path_factory.mktemp("solar-system")
    options = solar_system.Options(years=10, tracers=50)
    return options, out, solar_system.study(options, out, False)


@pytest.mark.slow
def test_the_planets_are_measured_against_jpl(short_study):
    _, _, found = short_study
    rows = {row[0]: row[1:] for row in found.tables[0].rows}
    assert rows["Mercury"][0] > 1500 and rows["Mercury"][1] < 5  # km after ten years
    assert rows["Mars"][0] > 300 and rows["Mars"][1] < 6
    assert 1000 < rows["EMB"][1] < 1300


@pytest.mark.slow
def test_what_is_conserved_is_conserved(short_study):
    for _, _, change in short_study[2].tables[1].rows:
        assert change < 2e-14


@pytest.mark.slow
def test_the_report_holds_four_pictures_and_a_page(short_study, tmp_path):
    options, _, found = short_study
    assert len(found.figures) == 4 and found.timing["Newton"].steps == 100
    report.save(tmp_path, "solar-system", options, found)
    page = report.write(tmp_path).read_text()
    assert page.count("<img") + page.count("<svg") >= 4
    assert json.loads((tmp_path / "report.json").read_text())["options"]["tracers"] == 50


@pytest.mark.slow
def test_resuming_a_finished_run_gives_the_same_report(short_study):
    options, out, found = short_study
    again = solar_system.study(options, out, True)
    assert again.tables[0].rows == found.tables[0].rows
    assert [figure.data for figure in again.figures] == [figure.data for figure in found.figures]


@pytest.mark.slow
def test_the_seed_sets_the_tracers(x64):
    from jaxgpu.physics.nbody.planets import ephemeris

    start = ephemeris.de440(ephemeris.J2000)
    draw = lambda seed: solar_system.belt(solar_system.Options(tracers=8, seed=seed), start)[0]
    np.testing.assert_array_equal(draw(3), draw(3))
    assert np.abs(draw(3) - draw(4)).min() > 0


def test_it_is_found_by_name():
    assert "solar-system" in [study.name for study in studies()]
