"""A report is one page that needs nothing beside it."""

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib
import pytest

from jaxgpu import report
from jaxgpu.report import Figure, Report, Table
from jaxgpu.run import Timing

matplotlib.use("Agg")


@dataclass(frozen=True)
class Options:
    years: float = 3.5
    label: str = "<b>bold</b>"


def example():
    import matplotlib.pyplot as plt

    drawing, axes = plt.subplots()
    axes.plot([1, 2, 4])
    return Report(
        title="Falling <stones>",
        lead="They fall.",
        figures=[report.figure(drawing, "height & time")],
        tables=[Table("heights", ["stone", "m"], [["first", 1.23456789]], digits=4)],
        findings=["Stones fall at 9.81 m/s²."],
        citations=["Galilei (1638)"],
        timing={"fall": Timing(0.5, 1.25, 10)},
        seed=7,
    )


def test_holds_everything_and_loads_nothing(tmp_path):
    report.save(tmp_path / "stones", "stones", Options(), example())
    page = report.write(tmp_path).read_text()
    for text in ("Falling &lt;stones&gt;", "They fall.", "height &amp; time", "1.235", "Galilei"):
        assert text in page
    for text in ("3.5", "&lt;b&gt;bold", "jaxlib", "<td>7</td>", "0.5</td><td>1.25</td><td>10"):
        assert text in page
    assert "data:image/svg+xml;base64," in page
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page), "it loads something"


@pytest.mark.parametrize(
    "mime, tag",
    [
        ("image/svg+xml", "img"),
        ("image/png", "img"),
        ("image/gif", "img"),
        ("video/mp4", "video"),
        ("text/html", "iframe"),
    ],
)
def test_pictures_films_and_pages_are_shown(mime, tag, tmp_path):
    made = replace(example(), figures=[Figure("what was seen", mime, "R0lGODlhAQABAAAAACw=")])
    report.save(tmp_path / "stones", "stones", Options(), made)
    page = report.write(tmp_path).read_text()
    assert re.search(rf"<{tag}[^>]*data:{re.escape(mime)};base64,R0lGOD", page)


def test_several_studies_share_a_page(tmp_path):
    for study in ("one", "two"):
        report.save(tmp_path / study, study, Options(), example())
    page = report.write(tmp_path).read_text()
    assert page.count("<section") == 2 and 'href="#two"' in page


@pytest.mark.parametrize(
    ("value", "shown"),
    [(7409.19, "7410"), (40.414, "40.4"), (3.2864e-15, "3.29e-15"), (0.0, "0"), (1e9, "1e+09")]
    + [(float("nan"), "nan"), (12, "12"), ("Sun", "Sun")],
)
def test_numbers_are_shown_as_a_reader_wants_them(value, shown, tmp_path):
    table = Table("", ["x"], [[value]], digits=3)
    report.save(tmp_path, "one", Options(), Report("", "", tables=[table]))
    assert f"<td>{shown}</td>" in report.write(tmp_path).read_text()


def test_an_empty_folder_is_named(tmp_path):
    with pytest.raises(report.ReportError, match="no results in"):
        report.write(tmp_path)


def test_the_same_figure_has_the_same_bytes(tmp_path):
    assert example().figures == example().figures


def test_the_record_is_plain_json(tmp_path):
    report.save(tmp_path, "stones", Options(), example())
    record = json.loads((tmp_path / "report.json").read_text())
    assert record["options"] == {"years": 3.5, "label": "<b>bold</b>"}
    assert record["environment"]["jaxgpu"] and list(tmp_path.iterdir()) == [
        tmp_path / "report.json"
    ]


def test_text_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """A power cut between the two left an empty file; two processes wrote into one scratch file."""
    order, scratch = [], []
    sync, replace = os.fsync, Path.replace

    def seen(self, target):
        scratch.append(self.name)
        order.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("sync"), sync(handle)))
    monkeypatch.setattr(Path, "replace", seen)
    for text in ("one", "two"):
        report.replace_text(tmp_path / "a.json", text)
    assert order == ["sync", "replace", "sync"] * 2 and scratch[0] != scratch[1]
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.json", "two")]


def test_text_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    report.replace_text(tmp_path / "a.json", "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        report.replace_text(tmp_path / "a.json", "new")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.json", "old")]
