"""HTML pages: all reports of a folder, and two runs of the same study side by side."""

import base64
import csv
import html
import io
import itertools
import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import jaxgpu
from jaxgpu.devices.processes import is_leader
from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.render import palette, view

from .parts import ReportError
from .record import import_extras, read, replace_text

_GROUPED_FROM = 100_000  # from here on the digits of integers are grouped by three
_THIN_SPACE = "\u202f"  # a narrow no-break space


@explain_errors
def write(folder: Path) -> Path:
    """Render all reports in `folder` and its direct subfolders into `report.html`, oldest first.

    Raises:
        ReportError: there is none, jinja2 is not installed, or a report is truncated.

    >>> import tempfile
    >>> from jaxgpu.report import Report, Table, read, save
    >>> out, numbers = Path(tempfile.mkdtemp()), Table("Numbers.", ["n"], [[1]])
    >>> save(out, "numbers", numbers, Report("One", "There is one number.", tables=[numbers]))
    >>> read(out / "report.json")["report"]["lead"]
    'There is one number.'
    >>> write(out).name
    'report.html'
    """
    folder = arguments.path("report.write: folder", folder)
    records = find_reports(folder)
    return _render_page(folder / "report.html", "page.html", records=records)


def find_reports(folder: Path) -> list[dict[str, Any]]:
    """Return the stored reports in a folder and its direct subfolders, oldest first.

    Raises:
        ReportError: there is none, jinja2 is not installed, or one is truncated.
    """
    import_extras("jinja2")
    files = [*folder.glob("report.json"), *sorted(folder.glob("*/report.json"))]
    if not files:
        raise ReportError(f"report: no results in {folder}; give a folder that `jaxgpu run` wrote")
    return sorted((read(file) for file in files), key=lambda record: record["date"])


@explain_errors
def compare(one: Path, other: Path) -> Path:
    """Render two runs of the same studies side by side: `comparison.html` in the second folder.

    Raises:
        ReportError: a folder has no results, or no study is in both; jinja2 is not installed, or a
            report is truncated.

    >>> import tempfile
    >>> from jaxgpu.report import Report, Table, save
    >>> options, report = Table("Numbers.", ["n"], [[1]]), Report("One", "There is one number.")
    >>> folders = [Path(tempfile.mkdtemp()) for _ in range(2)]
    >>> for out in folders:
    ...     save(out, "numbers", options, report)
    >>> compare(*folders).name
    'comparison.html'
    """
    one, other = (arguments.path("report.compare: folder", folder) for folder in (one, other))
    first, second = (
        {record["study"]: record for record in find_reports(at)} for at in (one, other)
    )
    shared = [study for study in first if study in second]
    if not shared:
        raise ReportError(
            f"report: {one} has {', '.join(first)} and {other} has {', '.join(second)}; "
            "give two runs of the same study"
        )
    pairs = [(first[study], second[study]) for study in shared]
    names = (str(one), str(other))
    return _render_page(other / "comparison.html", "comparison.html", pairs=pairs, names=names)


def _render_page(file: Path, template: str, **given: Any) -> Path:
    """Render a template to a file, written by process 0; return its path."""
    import jinja2

    loader = jinja2.FunctionLoader(_read_template)
    engine = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    engine.filters |= {
        "number": format_number,
        "told": _to_html,
        "framed": _frame_html,
        "link": _data_url,
        "csv": _to_csv,
    }
    engine.filters |= {"seconds": _format_duration, "json": _to_json, "change": relative_change}
    engine.globals |= {
        "version": jaxgpu.__version__,
        "palette": palette,
        "zip": itertools.zip_longest,
    }
    engine.globals |= {"script": _read_template("page.js"), "policy": _content_security_policy()}
    page = engine.get_template(template).render(**given)
    if is_leader():
        replace_text(file, page)
    return file


def _read_template(name: str) -> str:
    return resources.files("jaxgpu.report").joinpath(name).read_text()


def _content_security_policy() -> str:
    """Return the content security policy: inline data, and the scripts of the page and of views."""
    scripts = " ".join(map(view.csp_hash, (_read_template("page.js"), view.view_script())))
    return (
        "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
        f"script-src {scripts}; base-uri 'none'; form-action 'none'"
    )


def _frame_html(data: str) -> str:
    """Return the page in a frame; a view is rebuilt from its numbers, so no stored script runs."""
    page = _decode_text(data)
    held = view.extract_data(page)
    return page if held is None else view.make_page(held)


def format_number(value: Any, digits: int) -> str:
    """Format a number with `digits` significant digits, and an exponent only where it helps.

    >>> tiny, large = format_number(2.220446e-16, 9), format_number(1_500_000, 3)
    >>> format_number(7409.19, 3), tiny, large.split(_THIN_SPACE)
    ('7410', '2.22e-16', ['1', '500', '000'])
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _GROUPED_FROM:
        return f"{value:,}".replace(",", _THIN_SPACE)
    if not isinstance(value, float):
        return str(value)
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        return np.format_float_positional(value, precision=digits, fractional=False, trim="-")
    return np.format_float_scientific(value, precision=min(digits, 3) - 1, trim="-")


def relative_change(one: Any, other: Any) -> str:
    """Return the relative change between two numbers in per cent, or a word for other values.

    >>> pairs = (2.0, 3.0), (2.0, 2.0), ("Sun", "Sun"), ("yes", "no")
    >>> tuple(relative_change(*pair) for pair in pairs)
    ('+50 %', '0', '', 'differs')
    """
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (one, other))
    if one == other:
        return "0" if numbers else ""
    try:
        finite = numbers and math.isfinite(one) and math.isfinite(other)
    except OverflowError:  # an integer above the largest float
        finite = False
    if not finite or one == 0:
        return "differs"
    share = 100 * (other - one) / abs(one)
    return f"{share:+.3g} %" if abs(share) > 1e-6 else "below 1e-6 %"


def _format_duration(value: float | None) -> str:
    """Format a duration in seconds, minutes or hours."""
    if value is None:
        return "not recorded"
    if value < 90:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def _to_html(sentence: str) -> Any:
    """Return a text as HTML, with words in backquotes as code."""
    import markupsafe

    return markupsafe.Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(sentence)))


def _decode_text(data: str) -> str:
    return base64.b64decode(data).decode(errors="replace")


def _data_url(content: str, mime: str) -> str:
    """Return a data URL that holds the text itself."""
    return f"data:{mime};base64,{base64.b64encode(content.encode()).decode()}"


def _to_csv(table: dict[str, Any]) -> str:
    """Return a table as CSV, with all digits."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table["columns"], *table["rows"]])
    return file.getvalue()


def _to_json(record: dict[str, Any]) -> str:
    """Return the stored report as JSON, without its figures."""
    report = {name: part for name, part in record["report"].items() if name != "figures"}
    return json.dumps({**record, "report": report}, indent=1)
