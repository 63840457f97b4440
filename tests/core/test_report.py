"""Reports: each is one page that needs no other file."""

import base64
import csv
import hashlib
import html
import io
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import av
import matplotlib
import numpy as np
import pytest

from jaxgpu import report
from jaxgpu.inputs.fields import size
from jaxgpu.render import palette, show
from jaxgpu.report import Figure, Headline, Report, Table, page
from jaxgpu.runs.loop import Timing

matplotlib.use("Agg")


@dataclass(frozen=True)
class Options:
    years: int = size(default=9, least=1)
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
        headlines=[Headline("height of the `first` stone, m", 1.23456, "1.2 by hand")],
    )


def write_page(tmp_path, options=Options(), made=None, **given):
    """Save and write the report of one study; return its page."""
    report.save(tmp_path / "stones", "stones", options, made or example(), **given)
    return report.write(tmp_path).read_text()


def read_link(page, name):
    """Return the content of the link that downloads `name`."""
    address = re.search(rf'download="{name}" href="data:[^;]*;base64,([^"]*)"', page)[1]
    return base64.b64decode(address.replace("&#43;", "+")).decode()


def test_holds_everything_and_loads_nothing(tmp_path):
    report.save(tmp_path / "stones", "stones", Options(), example())
    page = report.write(tmp_path).read_text()
    for text in ("Falling &lt;stones&gt;", "They fall.", "height &amp; time", "1.235", "Galilei"):
        assert text in page
    for text in ("&lt;b&gt;bold", "jaxlib", "<td>7</td>", "0.5</td><td>1.25</td><td>10"):
        assert text in page
    assert "data:image/svg+xml;base64," in page
    assert not re.search(r""" (src|href)=["'](?!data:|#)""", page), "it loads something"


@pytest.mark.parametrize(
    "mime, tag",
    [
        ("image/svg+xml", "img"),
        ("image/png", "img"),
        ("image/gif", "img"),
        ("video/mp4", "video"),
    ],
)
def test_pictures_and_films_are_shown(mime, tag, tmp_path):
    made = replace(example(), figures=[Figure("what was seen", mime, "R0lGODlhAQABAAAAACw=")])
    page = write_page(tmp_path, made=made)
    assert re.search(rf"<{tag}[^>]*data:{re.escape(mime)};base64,R0lGOD", page)


def embed_page(tmp_path, inner):
    """Return the page of a study whose only figure is a page, and that page in its frame."""
    data = base64.b64encode(inner.encode()).decode()
    page = write_page(
        tmp_path, made=replace(example(), figures=[Figure("seen", "text/html", data)])
    )
    frame = re.search(r'<iframe [^>]*sandbox="allow-scripts" srcdoc="([^"]*)"', page)[1]
    return page, html.unescape(frame)


def scripts(page):
    return re.findall(r"<script>(.*?)</script>", page, re.S)


def read_policy(page):
    """Return the security policy of a page: the values of each directive."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    kinds = (kind.split() for kind in html.unescape(policy).split(";"))
    return {kind: set(values) for kind, *values in kinds}


def digest(script):
    found = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{found}'"


def test_a_report_runs_its_own_script_and_that_of_views_and_loads_nothing(tmp_path):
    seen = show(np.eye(3)).page()
    page, frame = embed_page(tmp_path, seen)
    assert frame == seen and len(scripts(frame)) == len(scripts(page)) == 1
    policy = read_policy(page)
    assert policy["script-src"] == {digest(*scripts(page)), digest(*scripts(frame))}
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == {"'none'"}
    assert policy["img-src"] == policy["media-src"] == {"data:"}
    assert read_policy(frame)["script-src"] == {digest(*scripts(frame))}


def test_no_script_comes_out_of_a_record(tmp_path):
    page, frame = embed_page(tmp_path, "<p>&amp;</p><script>draw(1 < 2)</script>")
    assert frame.startswith("<p>&amp;") and digest("draw(1 < 2)") not in page
    altered = show(np.eye(3)).page().replace("</html>", "<script>draw()</script></html>")
    page, frame = embed_page(tmp_path, altered)  # of a view the numbers alone are used
    assert frame == show(np.eye(3)).page()


def test_nothing_holds_a_finger_or_a_wheel():
    """A reader must be able to scroll past every image."""
    for part in (Path(report.__file__).parent).glob("*.*"):
        assert not re.search("touch-action: *none|onwheel", part.read_text()), part.name


def test_every_figure_tells_its_command_and_gives_its_numbers(tmp_path):
    made = replace(example(), figures=2 * example().figures)
    page = write_page(tmp_path, Options(years=3), made)
    figures = re.findall(r"<figure>.*?</figure>", page, re.S)
    assert len(figures) == 2
    assert all("<code>jaxgpu run stones --years 3</code>" in figure for figure in figures)
    rows = list(csv.reader(io.StringIO(read_link(page, "stones-figure-2.csv"))))
    assert rows[0] == ["panel", "line", "x", "y"] and [row[3] for row in rows[1:]] == [
        "1",
        "2",
        "4",
    ]
    assert read_link(page, "stones-table-1.csv") == "stone,m\nfirst,1.23456789\n"  # all digits
    record = json.loads(read_link(page, "stones.json"))
    assert record["options"]["years"] == 3 and "figures" not in record["report"]


def test_the_cover_says_what_ran_where_how_long_and_what_came_of_it(tmp_path):
    cover = re.search(r'<header id="cover">.*?</header>', write_page(tmp_path, seconds=75.0), re.S)[
        0
    ]
    about = report.environment()
    for text in (about["processor"], about["jax"], about["python"], "75 s", "1.23", "1.2 by hand"):
        assert text in cover
    assert "<code>first</code>" in cover and 'data-of="size">default<' in cover


def test_a_section_at_small_size_says_so(tmp_path):
    assert "Small run.</b> years 3 of 9:" in write_page(tmp_path, Options(years=3))
    assert "Small run" not in write_page(tmp_path, Options(years=12))


def test_captions_know_the_number_of_seeds():
    assert report.seeds_caption(8, "medians of {n} seeds") == "medians of 8 seeds"
    assert "medians" not in report.seeds_caption(1, "medians of {n} seeds")


def test_a_picture_follows_the_page_and_its_letters_are_11_to_13_pixels_high():
    import matplotlib.pyplot as plt

    @palette.report_style
    def draw_figure():
        drawing, axes = plt.subplots()
        axes.plot([1, 2], label="a")
        axes.set(xlabel="x", title="y")
        letters = [
            axes.title,
            axes.xaxis.label,
            *axes.get_xticklabels(),
            *axes.legend().get_texts(),
        ]
        return drawing, letters

    drawing, letters = draw_figure()
    assert all(11 <= one.get_fontsize() * 96 / 72 <= 13 for one in letters)
    svg = base64.b64decode(report.figure(drawing, "").data).decode()
    assert "prefers-color-scheme:dark" in svg and "currentColor" in svg
    assert palette.INK not in svg.partition("</style>")[2] and "#ffffff" not in svg


def test_a_film_is_shown_at_its_own_size():
    one = report.video(np.zeros((3, 20, 31, 3), np.uint8), "dark", 0.1)
    with av.open(io.BytesIO(base64.b64decode(one.data))) as film:
        stream = film.streams.video[0]
        assert (one.mime, stream.width, stream.height, stream.frames) == ("video/mp4", 30, 20, 3)
    with pytest.raises(TypeError, match="report.video: caption=3; it must be a string"):
        report.video(np.zeros((3, 20, 30, 3)), 3)


def test_every_colour_reads_on_white_and_on_dark():
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.05 + sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), parts))

    for colour in palette.SERIES:
        assert light(palette.LIGHT_PAGE) / light(colour) > 3.6
        assert light(colour) / light(palette.DARK_PAGE) > 3.6


def test_studies_take_their_colours_from_the_palette():
    for file in (Path(report.__file__).parents[1] / "studies").rglob("*.py"):
        found = re.findall(r"#[0-9a-fA-F]{6}\b|color=\"(?:k|C\d|0\.\d+)\"|tab:", file.read_text())
        assert not found, (file, found)


def test_two_runs_are_compared_number_by_number(tmp_path):
    other = replace(example(), headlines=[Headline("height of the `first` stone, m", 2.46912)])
    report.save(tmp_path / "a", "stones", Options(), example())
    report.save(tmp_path / "b", "stones", Options(years=3), other)
    page = report.compare(tmp_path / "a", tmp_path / "b").read_text()
    assert "+100 %" in page and "<td>years</td><td>9</td><td>3</td>" in page
    assert "<td>label</td>" not in page  # the same in both
    assert page.count("data:image/svg+xml") == 2 and page.count("<section") == 1
    report.save(tmp_path / "c", "drops", Options(), example())
    with pytest.raises(report.ReportError, match="give two runs of the same study"):
        report.compare(tmp_path / "a", tmp_path / "c")


def test_a_record_of_before_is_still_drawn(tmp_path):
    """A record of an older version has no command, seconds or headlines."""
    report.save(tmp_path, "stones", Options(), example())
    record = json.loads((tmp_path / "report.json").read_text())
    for name in ("command", "reduced", "seconds"):
        del record[name]
    del record["report"]["headlines"]
    (tmp_path / "report.json").write_text(json.dumps(record))
    assert "not recorded" in report.write(tmp_path).read_text()


def tree_paths(tree, at=()):
    """Yield the path of every value in a tree of JSON."""
    lists = enumerate(tree) if isinstance(tree, list) else ()
    for key, value in tree.items() if isinstance(tree, dict) else lists:
        yield (*at, key)
        yield from tree_paths(value, (*at, key))


def replace_at(record, at, value):
    """Return a copy with `value` at a path, or without the entry there if it is `...`."""
    *inside, last = at
    record = held = json.loads(json.dumps(record))
    for key in inside:
        held = held[key]
    if value is ...:
        del held[last]
    else:
        held[last] = value
    return record


# Nothing in a record may be all of these, so most are rejected at each path.
ODD = [None, True, -1, 2.5, "text", [], {}, [1], {"a": 1}, [[1, [2]], [3]], 10**400, "\ud800", ...]


def test_a_record_is_drawn_or_refused_in_a_sentence_whatever_one_of_its_fields_holds(
    tmp_path, monkeypatch
):
    report.save(tmp_path, "stones", Options(2), example(), seconds=3.0)
    file = tmp_path / "report.json"
    good = json.loads(file.read_text())
    assert good["reduced"] == {"years": [2, 9]}
    drawn = []
    for at in tree_paths(good):
        for value in ODD:
            file.write_text(json.dumps(replace_at(good, at, value)))
            try:
                drawn.append(report.read(file))
            except report.ReportError as error:
                said = str(error)
                assert said.startswith(f"{file}: ") and "\n" not in said and len(said) < 400
                assert said.endswith("; run its study again with --resume, or remove the file")
    assert len(drawn) > 100
    monkeypatch.setattr(page, "find_reports", lambda folder: drawn)
    report.write(tmp_path)
    for record in drawn:
        for one, other in ((good, record), (record, good)):
            for a, b in zip(one["report"]["headlines"], other["report"]["headlines"]):
                page.relative_change(a["value"], b["value"])


@pytest.mark.parametrize(
    "at, value, said",
    [
        (["seconds"], "long", "seconds='long'; it must be a number"),
        (["reduced"], {"years": 3}, "reduced['years']=3; it must be two numbers"),
        (["report", "timing", "fall", "run"], "", "report.timing['fall'].run=''; it must be a num"),
        (["report", "tables", 0, "digits"], 10**9, "report.tables[0].digits=1000000000; it must"),
        (["report", "lead"], ..., "report.lead is missing; run its study again"),
    ],
)
def test_a_field_that_holds_something_else_is_named(tmp_path, at, value, said):
    report.save(tmp_path, "stones", Options(2), example())
    file = tmp_path / "report.json"
    file.write_text(json.dumps(replace_at(json.loads(file.read_text()), at, value)))
    with pytest.raises(report.ReportError) as refused:
        report.write(tmp_path)
    assert str(refused.value).startswith(f"{file}: {said}")


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
    assert record["options"] == {"years": 9, "label": "<b>bold</b>"}
    assert record["environment"]["jaxgpu"] and list(tmp_path.iterdir()) == [
        tmp_path / "report.json"
    ]


def test_text_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """Otherwise a power cut leaves an empty file, and two processes share a scratch file."""
    order, scratch = [], []
    sync, replace = os.fsync, Path.replace

    def log_replace(self, target):
        scratch.append(self.name)
        order.append("replace")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", lambda handle: (order.append("sync"), sync(handle)))
    monkeypatch.setattr(Path, "replace", log_replace)
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
