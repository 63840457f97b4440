"""A study's results as one HTML file that needs nothing beside it.

A study returns a `Report`; `save` keeps it in the study's folder as JSON, figures inside, and
`write` draws every report below a folder into one page.
"""

import base64
import dataclasses
import datetime
import io
import json
import os
import platform
import uuid
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np

import jaxgpu
from jaxgpu import checkpoint
from jaxgpu.run import Timing


class ReportError(ValueError):
    """A report cannot be drawn; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Figure:
    """A picture, a film or a self-contained page, as `mime` says, in base64."""

    caption: str
    mime: str  # image/svg+xml, image/png, video/mp4, text/html
    data: str


@dataclass(frozen=True)
class Table:
    """Rows under their column names; numbers are shown to `digits` significant digits."""

    caption: str
    columns: list[str]
    rows: list[list[Any]]
    digits: int = 5


@dataclass(frozen=True)
class Report:
    """What a study found."""

    title: str
    lead: str  # one or two sentences: the question and the answer
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # a sentence each
    citations: list[str] = field(default_factory=list)  # of methods and data that were used
    timing: dict[str, Timing] = field(default_factory=dict)  # by the name of the run
    seed: int | None = None


def ready(*packages: str) -> None:
    """Ask for the packages that a report is drawn with, which a bare installation has not.

    Raises:
        ReportError: one of them cannot be imported.
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
    """Take a matplotlib figure, and close it."""
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    kind = {"image/svg+xml": "svg", "image/png": "png"}[mime]
    with plt.rc_context({"svg.hashsalt": "jaxgpu"}):
        stamp = {"Date": None} if kind == "svg" else {}
        drawing.savefig(file, format=kind, dpi=150, bbox_inches="tight", metadata=stamp)
    plt.close(drawing)
    return Figure(caption, mime, base64.b64encode(file.getvalue()).decode())


def environment() -> dict[str, str]:
    """Versions, device and precision: what a result depends on beside its options."""
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
    """Keep `report` in the folder of its study, with all that it depends on."""
    record = {
        "study": study,
        "options": dataclasses.asdict(options),
        "environment": environment(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "report": dataclasses.asdict(report),
    }
    replace_text(out / "report.json", json.dumps(record, default=str))


def write(folder: Path) -> Path:
    """Draw all reports in `folder` and right below it into `report.html`, oldest first.

    Raises:
        FileNotFoundError: there is none.
        ReportError: jinja2 is not installed, or a report is torn.
    """
    ready("jinja2")
    import jinja2

    files = [*folder.glob("report.json"), *sorted(folder.glob("*/report.json"))]
    if not files:
        raise FileNotFoundError(
            f"report: no results in {folder}; give a folder that `jaxgpu run` wrote"
        )
    records = sorted((read(file) for file in files), key=lambda record: record["date"])
    engine = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    engine.filters["number"] = _number
    template = Path(__file__).with_name("report.html").read_text()
    page = engine.from_string(template).render(records=records, version=jaxgpu.__version__)
    replace_text(folder / "report.html", page)
    return folder / "report.html"


def read(file: Path) -> dict[str, Any]:
    """The record that `save` wrote, whole.

    Raises:
        ReportError: the file is empty, torn, or no report.
    """
    try:
        record = json.loads(file.read_text())
        held = record["report"]
        Report(**held)
        for name, kind in (("figures", Figure), ("tables", Table)):
            for part in held[name]:
                kind(**part)
        for timing in held["timing"].values():
            Timing(**timing)
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

    It is on the disk before it has the name, so that a power cut leaves no empty file; the name of
    the scratch file is its own, so that two processes cannot write into one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(scratch, "x") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
    checkpoint.sync_directory(path.parent)


def _number(value: Any, digits: int) -> str:
    """`digits` significant digits, without an exponent where a reader needs none."""
    if not isinstance(value, float):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        return np.format_float_positional(value, precision=digits, fractional=False, trim="-")
    return np.format_float_scientific(value, precision=digits - 1, trim="-")
