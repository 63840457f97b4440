"""A study's results as one HTML file that needs nothing beside it.

A study returns a `Report`; `save` keeps it in the study's folder as JSON, figures inside, and
`write` draws every report below a folder into one page. In a job of several processes process 0
writes them.
"""

import base64
import dataclasses
import datetime
import io
import json
import platform
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxgpu
from jaxgpu import arguments
from jaxgpu.files import replacing
from jaxgpu.processes import leads
from jaxgpu.pytree import size
from jaxgpu.ranges import check
from jaxgpu.run import Timing

_DRAWN = {"image/svg+xml": "svg", "image/png": "png"}
_SHOWN = (*_DRAWN, "image/gif", "video/mp4", "text/html")


class ReportError(ValueError):
    """A report cannot be drawn; the message is one sentence that says what to do.

    >>> read(Path("/nowhere/report.json"))
    Traceback (most recent call last):
    jaxgpu.report.ReportError: /nowhere/report.json: no such report; ...
    """


@dataclass(frozen=True)
class Figure:
    """A picture, a film or a self-contained page, as `mime` says, in base64."""

    caption: str  # a sentence that says what is seen
    mime: str  # image/svg+xml, image/png, image/gif, video/mp4, text/html
    data: str  # the file, in base64


@dataclass(frozen=True)
class Table:
    """Rows under their column names; numbers are shown to `digits` significant digits."""

    caption: str  # a sentence that says what is listed
    columns: list[str]  # their names, the unit in each
    rows: list[list[Any]]  # as many values in each as there are columns
    digits: int = size(5, least=1)  # significant digits of numbers


@dataclass(frozen=True)
class Report:
    """What a study found."""

    title: str  # of the study
    lead: str  # one or two sentences: the question and the answer
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # a sentence each
    citations: list[str] = field(default_factory=list)  # of methods and data that were used
    timing: dict[str, Timing] = field(default_factory=dict)  # by the name of the run
    seed: int | None = None  # that all randomness came from; None where there was none


_PARTS = {"figures": Figure, "tables": Table, "findings": str, "citations": str, "timing": Timing}


def ready(*packages: str) -> None:
    """Ask for the packages that a report is drawn with, which a bare installation has not.

    Raises:
        ReportError: one of them cannot be imported.

    >>> ready("json")
    >>> ready("no_such_package")
    Traceback (most recent call last):
    jaxgpu.report.ReportError: report: no_such_package cannot be imported...
    """
    for package in packages or ("jinja2", "matplotlib"):
        try:
            import_module(package)
        except ImportError as missing:
            raise ReportError(
                f"report: {package} cannot be imported ({missing}); reports and their pictures are "
                'drawn with it; run `pip install "jaxgpu[viz]"`'
            ) from None


def figure(drawing: Any, caption: str, mime: str = "image/svg+xml") -> Figure:
    """Take a matplotlib figure, and close it.

    Raises:
        ValueError, TypeError: `drawing` is no figure, `caption` no text, or `mime` not SVG or PNG.

    >>> import matplotlib.pyplot as plt
    >>> drawing, axes = plt.subplots()
    >>> figure(drawing, "An empty frame.").mime
    'image/svg+xml'
    """
    import matplotlib.pyplot as plt

    if not hasattr(drawing, "savefig"):
        found = arguments.shown(drawing)
        raise TypeError(f"report.figure: drawing={found}; it must be a figure of matplotlib")
    _text("report.figure: caption", caption)
    kind = _DRAWN[arguments.word("report.figure: mime", mime, tuple(_DRAWN))]
    file = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "jaxgpu"}):
        stamp = {"Date": None} if kind == "svg" else {}
        drawing.savefig(file, format=kind, dpi=150, bbox_inches="tight", metadata=stamp)
    plt.close(drawing)
    return Figure(caption, mime, base64.b64encode(file.getvalue()).decode())


def environment() -> dict[str, str]:
    """Versions, device and precision: what a result depends on beside its options.

    >>> environment()["jax"] == jax.__version__
    True
    """
    device = jax.devices()[0]
    return {
        "jaxgpu": jaxgpu.__version__,
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": f"{len(jax.devices())} x {device.device_kind} ({device.platform})",
        "machine": f"{platform.system()} {platform.machine()}",
        "float64 by default": str(jax.config.read("jax_enable_x64")),
    }


def save(out: Path, study: str, options: Any, report: Report) -> None:
    """Keep `report` in the folder of its study, with all that it depends on.

    Raises:
        ValueError, TypeError: `options` or `report` are no dataclasses of their kinds, or a part of
            the report cannot be drawn: a row of another length than the columns, no digits.
    """
    out = arguments.path("report.save: out", out)
    arguments.word("report.save: study", study)
    if not dataclasses.is_dataclass(options) or isinstance(options, type):
        found = arguments.shown(options)
        raise TypeError(f"report.save: options={found}; it must be a dataclass of options")
    _drawable("report.save", report)
    record = {
        "study": study,
        "options": dataclasses.asdict(options),
        "environment": environment(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "report": dataclasses.asdict(report),
    }
    if leads():
        replace_text(out / "report.json", json.dumps(record, default=_plain))


def write(folder: Path) -> Path:
    """Draw all reports in `folder` and right below it into `report.html`, oldest first.

    Raises:
        ReportError: there is none, jinja2 is not installed, or a report is torn.

    >>> import tempfile
    >>> out, options = Path(tempfile.mkdtemp()), Table("Numbers.", ["n"], [[1]])
    >>> save(out, "numbers", options, Report("One", "There is one number.", tables=[options]))
    >>> read(out / "report.json")["report"]["lead"]
    'There is one number.'
    >>> write(out).name
    'report.html'
    """
    folder = arguments.path("report.write: folder", folder)
    ready("jinja2")
    import jinja2

    files = [*folder.glob("report.json"), *sorted(folder.glob("*/report.json"))]
    if not files:
        raise ReportError(f"report: no results in {folder}; give a folder that `jaxgpu run` wrote")
    records = sorted((read(file) for file in files), key=lambda record: record["date"])
    engine = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    engine.filters["number"] = _number
    template = Path(__file__).with_name("report.html").read_text()
    page = engine.from_string(template).render(records=records, version=jaxgpu.__version__)
    if leads():
        replace_text(folder / "report.html", page)
    return folder / "report.html"


def read(file: Path) -> dict[str, Any]:
    """The record that `save` wrote, whole.

    Raises:
        ReportError: the file is missing, empty, torn, or no report.
    """
    file = arguments.path("report.read: file", file, "a file")
    if not file.is_file():
        raise ReportError(f"{file}: no such report; give a report.json that `jaxgpu run` wrote")
    try:
        record = json.loads(file.read_text())
        _drawable("report.read", _report(record["report"]))
        whole = all(isinstance(record[name], dict) for name in ("options", "environment"))
        whole &= all(isinstance(record[name], str) for name in ("study", "date"))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        whole, record = False, {}
    if not whole:
        raise ReportError(
            f"{file}: empty, torn or no report of jaxgpu; run its study again with --resume, "
            "or remove the file"
        )
    return record


def replace_text(path: Path, text: str) -> None:
    """Put `text` under the name `path` as a whole: a reader sees the old text or the new.

    Raises:
        ValueError, TypeError: `path` names no file, or `text` is no text.

    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp(), "page.html")
    >>> replace_text(page, "new")
    >>> page.read_text()
    'new'
    """
    path = arguments.path("report.replace_text: path", path, "a file")
    _text("report.replace_text: text", text)
    with replacing(path) as file:
        file.write(text)


def _report(held: dict[str, Any]) -> Report:
    """The report of a record."""
    parts = {
        "figures": [Figure(**part) for part in held["figures"]],
        "tables": [Table(**part) for part in held["tables"]],
        "timing": {name: Timing(**timing) for name, timing in held["timing"].items()},
    }
    return Report(**{**held, **parts})


def _drawable(name: str, report: Any) -> None:
    """Refuse a report of which a page would show something else than was meant."""
    if not isinstance(report, Report):
        raise TypeError(f"{name}: report={arguments.shown(report)}; it must be a Report")
    for part in ("title", "lead"):
        _text(f"{name}: Report.{part}", getattr(report, part))
    for part, kind in _PARTS.items():
        held = getattr(report, part)
        parts = list(held.values()) if part == "timing" and isinstance(held, dict) else held
        if not isinstance(parts, list | tuple) or not all(isinstance(one, kind) for one in parts):
            found = arguments.shown(held)
            raise TypeError(f"{name}: Report.{part}={found}; each of it must be a {kind.__name__}")
    for picture in report.figures:
        arguments.word(f"{name}: Figure.mime", picture.mime, _SHOWN)
    for table in report.tables:
        check(name, table)
        for part in (table.columns, table.rows):
            if not isinstance(part, list | tuple | np.ndarray | jax.Array):
                found = arguments.shown(part)
                raise TypeError(f"{name}: Table of {found}; it must be of columns and rows, lists")
        wide = len(table.columns)
        odd = [row for row in table.rows if np.ndim(row) == 0 or len(row) != wide]
        if odd:
            raise ValueError(
                f"{name}: Table.rows={arguments.shown(odd[0])} under {wide} columns; "
                "each row must have a value for each"
            )


def _text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name}={arguments.shown(value)}; it must be a text")


def _plain(value: Any) -> Any:
    """What JSON holds for an array or a number of NumPy or JAX; the words of anything else."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic | jax.Array) else str(value)


def _number(value: Any, digits: int) -> str:
    """`digits` significant digits, without an exponent where a reader needs none."""
    if not isinstance(value, float):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        return np.format_float_positional(value, precision=digits, fractional=False, trim="-")
    return np.format_float_scientific(value, precision=digits - 1, trim="-")
