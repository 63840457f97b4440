"""Parts of a report, and their validation."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxgpu.inputs import arguments
from jaxgpu.inputs.fields import size
from jaxgpu.inputs.ranges import check
from jaxgpu.runs.loop import Timing

IMAGE_FORMATS = {"image/svg+xml": "svg", "image/png": "png"}
MIME_TYPES = (*IMAGE_FORMATS, "image/gif", "video/mp4", "text/html")


class ReportError(ValueError):
    """Error for a report that cannot be rendered; the message gives the remedy.

    >>> from pathlib import Path
    >>> from jaxgpu.report import read
    >>> read(Path("/nowhere/report.json"))
    Traceback (most recent call last):
    jaxgpu.report.parts.ReportError: /nowhere/report.json: no such report; ...
    """


@dataclass(frozen=True)
class Figure:
    """Image, video or self-contained HTML page in base64; `mime` gives its type.

    Among pages, only views run scripts, so that they can be rotated by hand (`report.view` makes
    them): a report runs no script that is stored with it.
    """

    caption: str  # a sentence that describes the figure
    mime: str  # image/svg+xml, image/png, image/gif, video/mp4, text/html
    data: str  # the file, in base64
    numbers: str = ""  # the plotted numbers, as CSV with a header


@dataclass(frozen=True)
class Table:
    """Rows under their column names; numbers are shown to `digits` significant digits."""

    caption: str  # a sentence that describes the table
    columns: list[str]  # names of the columns, with units
    rows: list[list[Any]]  # one value per column in each
    digits: int = size(4, least=1)  # significant digits of numbers


@dataclass(frozen=True)
class Headline:
    """Line of the summary: a result, and the value to compare it with."""

    what: str  # the quantity and its unit
    value: Any  # a number, or text that holds one
    beside: str = ""  # reference, in words: another package, a theory, a control
    digits: int = size(3, least=1)  # significant digits of a number


@dataclass(frozen=True)
class Report:
    """Results of a study."""

    title: str  # title of the study
    lead: str  # one or two sentences: the question and the answer
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # one sentence per finding
    citations: list[str] = field(default_factory=list)  # references for methods and data
    timing: dict[str, Timing] = field(default_factory=dict)  # by name of the run
    seed: int | None = None  # seed of all random numbers; None without randomness
    headlines: list[Headline] = field(default_factory=list)  # for the summary, at most three


_PARTS = {"figures": Figure, "tables": Table, "findings": str, "citations": str, "timing": Timing}
_PARTS |= {"headlines": Headline}


def from_record(held: dict[str, Any]) -> Report:
    """Return the report in a stored JSON value."""
    parts = {
        "figures": [Figure(**part) for part in held["figures"]],
        "tables": [Table(**part) for part in held["tables"]],
        "timing": {name: Timing(**timing) for name, timing in held["timing"].items()},
        "headlines": [Headline(**part) for part in held.get("headlines", [])],
    }
    return Report(**{**held, **parts})


def check_drawable(name: str, report: Any) -> None:
    """Raise if a report has a part that a page would not show as intended.

    Raises:
        ValueError, TypeError: it is not a `Report`, or a part has another type.
    """
    if not isinstance(report, Report):
        raise TypeError(f"{name}: report={arguments.format_value(report)}; it must be a Report")
    for part in ("title", "lead"):
        check_text(f"{name}: Report.{part}", getattr(report, part))
    for part, kind in _PARTS.items():
        held = getattr(report, part)
        parts = list(held.values()) if part == "timing" and isinstance(held, dict) else held
        if not isinstance(parts, list | tuple) or not all(isinstance(one, kind) for one in parts):
            found = arguments.format_value(held)
            raise TypeError(f"{name}: Report.{part}={found}; each item must be a {kind.__name__}")
    for picture in report.figures:
        arguments.word(f"{name}: Figure.mime", picture.mime, MIME_TYPES)
    for headline in report.headlines:
        check(name, headline)
    for table in report.tables:
        _check_row_lengths(name, table)


def _check_row_lengths(name: str, table: Table) -> None:
    """Raise if a table has a row of another length than its columns."""
    check(name, table)
    for part in (table.columns, table.rows):
        if not isinstance(part, list | tuple | np.ndarray | jax.Array):
            found = arguments.format_value(part)
            raise TypeError(f"{name}: Table of {found}; columns and rows must be lists")
    wide = len(table.columns)
    is_row = lambda row: isinstance(row, list | tuple) or getattr(row, "ndim", 0) > 0
    odd = [row for row in table.rows if not is_row(row) or len(row) != wide]
    if odd:
        raise ValueError(
            f"{name}: Table.rows={arguments.format_value(odd[0])} under {wide} columns; each row "
            "must have one value per column"
        )


def check_text(name: str, value: Any) -> None:
    """Raise if the value is not a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={arguments.format_value(value)}; it must be a string")
