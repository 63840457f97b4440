"""What a report is made of, and what is refused in one."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxgpu.inputs import arguments
from jaxgpu.inputs.fields import size
from jaxgpu.inputs.ranges import check
from jaxgpu.runs.loop import Timing

DRAWN = {"image/svg+xml": "svg", "image/png": "png"}
SHOWN = (*DRAWN, "image/gif", "video/mp4", "text/html")


class ReportError(ValueError):
    """A report cannot be drawn; the message is one sentence that says what to do.

    >>> from pathlib import Path
    >>> from jaxgpu.report import read
    >>> read(Path("/nowhere/report.json"))
    Traceback (most recent call last):
    jaxgpu.report.parts.ReportError: /nowhere/report.json: no such report; ...
    """


@dataclass(frozen=True)
class Figure:
    """A picture, a film or a self-contained page, as `mime` says, in base64.

    Of pages, a view's can be turned by hand (`report.view` makes them); scripts in others do not
    run, for a report runs none that comes out of a record.
    """

    caption: str  # a sentence that says what is seen
    mime: str  # image/svg+xml, image/png, image/gif, video/mp4, text/html
    data: str  # the file, in base64
    numbers: str = ""  # what is drawn, as text of comma-separated values with a header


@dataclass(frozen=True)
class Table:
    """Rows under their column names; numbers are shown to `digits` significant digits."""

    caption: str  # a sentence that says what is listed
    columns: list[str]  # their names, the unit in each
    rows: list[list[Any]]  # as many values in each as there are columns
    digits: int = size(4, least=1)  # significant digits of numbers


@dataclass(frozen=True)
class Headline:
    """One line of the cover: what was found, and what it stands beside."""

    what: str  # the quantity and its unit
    value: Any  # a number, or text that holds one
    beside: str = ""  # a peer, a theory, a control, in words
    digits: int = size(3, least=1)  # significant digits of a number


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
    headlines: list[Headline] = field(default_factory=list)  # for the cover, at most three


_PARTS = {"figures": Figure, "tables": Table, "findings": str, "citations": str, "timing": Timing}
_PARTS |= {"headlines": Headline}


def from_record(held: dict[str, Any]) -> Report:
    """The report that a record holds."""
    parts = {
        "figures": [Figure(**part) for part in held["figures"]],
        "tables": [Table(**part) for part in held["tables"]],
        "timing": {name: Timing(**timing) for name, timing in held["timing"].items()},
        "headlines": [Headline(**part) for part in held.get("headlines", [])],
    }
    return Report(**{**held, **parts})


def drawable(name: str, report: Any) -> None:
    """Refuse a report of which a page would show something else than was meant.

    Raises:
        ValueError, TypeError: it is no `Report`, or a part of it is of another kind.
    """
    if not isinstance(report, Report):
        raise TypeError(f"{name}: report={arguments.shown(report)}; it must be a Report")
    for part in ("title", "lead"):
        must_be_text(f"{name}: Report.{part}", getattr(report, part))
    for part, kind in _PARTS.items():
        held = getattr(report, part)
        parts = list(held.values()) if part == "timing" and isinstance(held, dict) else held
        if not isinstance(parts, list | tuple) or not all(isinstance(one, kind) for one in parts):
            found = arguments.shown(held)
            raise TypeError(f"{name}: Report.{part}={found}; each of it must be a {kind.__name__}")
    for picture in report.figures:
        arguments.word(f"{name}: Figure.mime", picture.mime, SHOWN)
    for headline in report.headlines:
        check(name, headline)
    for table in report.tables:
        _even(name, table)


def _even(name: str, table: Table) -> None:
    """Refuse a table with a row of another length than its columns."""
    check(name, table)
    for part in (table.columns, table.rows):
        if not isinstance(part, list | tuple | np.ndarray | jax.Array):
            found = arguments.shown(part)
            raise TypeError(f"{name}: Table of {found}; it must be of columns and rows, lists")
    wide = len(table.columns)
    is_row = lambda row: isinstance(row, list | tuple) or getattr(row, "ndim", 0) > 0
    odd = [row for row in table.rows if not is_row(row) or len(row) != wide]
    if odd:
        raise ValueError(
            f"{name}: Table.rows={arguments.shown(odd[0])} under {wide} columns; "
            "each row must have a value for each"
        )


def must_be_text(name: str, value: Any) -> None:
    """Refuse what is no text."""
    if not isinstance(value, str):
        raise TypeError(f"{name}={arguments.shown(value)}; it must be a text")
