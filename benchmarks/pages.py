"""Tables of the documents that come from the results: `python -m benchmarks.pages [--write]`.

A page holds marks with the names of entries, separated by semicolons. A name that ends in * matches
all names with that prefix:

    <!-- measured: solar-system; NSGA3, N = * -->
    <!-- end of measured -->

The text between the marks is written from the newest rows of `results.jsonl`. Without --write
nothing is written: the exit code is 1 if a page differs, a mark has no row, or a page states a
speed outside all marks.
"""

import re
import sys
from pathlib import Path
from typing import Any

from benchmarks import record

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"<!-- measured: (.+?) -->\n.*?<!-- end of measured -->", re.DOTALL)
# pages that other programs write completely from their own results
GENERATED = ("reach.md", "scaling.md")

# matches a ratio of speeds, CPU seconds, or work per second
_SPEED = re.compile(
    r"\d[\d.,]*\s*(?:×|times)\s+(?:as (?:fast|long)|faster|slower|longer|less than)"
    r"|\d[\d.,]*\s+CPU[- ](?:s\b|seconds?\b)"
    r"|\d[\d.,]*\s+(?:million|thousand) steps a (?:CPU )?second"
)


def pages() -> list[Path]:
    """Return README and all documents except the generated ones."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found += sorted((ROOT / "docs").glob("*/*.md"))
    left_out = tuple(ROOT / "docs" / name for name in ("api", "shown", "_build"))
    return [page for page in found if page.parent not in left_out]


def fill_page(text: str, rows: dict[str, dict[str, Any]]) -> str:
    """Return a page whose marks hold the tables of these rows."""
    return MARK.sub(lambda mark: _fill_mark(mark[1], rows), text)


def _fill_mark(names: str, rows: dict[str, dict[str, Any]]) -> str:
    found = [row for name in names.split("; ") for row in record.matching(rows, name)]
    return f"<!-- measured: {names} -->\n{table(found)}\n<!-- end of measured -->"


def table(rows: list[dict[str, Any]]) -> str:
    """Return results as a Markdown table: all programs, their ratio to jaxgpu, their answers."""
    lines = ["| work | program | seconds | over jaxgpu | answer |", "|---|---|---:|---:|---|"]
    for row in rows:
        work = f"{row['name']}: {row['work']}"
        by_cpu = record.is_cpu_time(row)
        for one in row["results"]:
            spent = one["cpu"] if by_cpu else one["wall"][1]
            answers = one["answer"].items()
            said = "; ".join(f"{k} {v:.3g}" for k, v in answers if v == v)
            cells = [work, one["name"], f"{spent:.3g}", f"{record.ratio(row, one):.3g}", said]
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            work = ""
    sittings = list(dict.fromkeys(record.provenance(row) for row in rows))
    clock = "CPU seconds" if all(map(record.is_cpu_time, rows)) else "Wall-clock or CPU seconds"
    lines += ["", f"{clock}, medians of alternating rounds, without compilation, from"]
    lines[-1] += f" `benchmarks/results.jsonl` ({'; '.join(sittings)})."
    return "\n".join(lines)


def unmarked_speeds(page: Path) -> list[str]:
    """Return an error for each speed that a page states outside its marks."""
    if page.name in GENERATED:
        return []
    lines = MARK.sub(lambda mark: "\n" * mark[0].count("\n"), page.read_text()).splitlines()
    name = page.relative_to(ROOT)
    return [
        f"{name}:{number}: {found[0]!r} is not in the record; cite its entry by a mark"
        for number, line in enumerate(lines, 1)
        for found in _SPEED.finditer(line)
    ]


def page_errors(write: bool = False) -> list[str]:
    """Return the errors of the pages, one line each, after updating their tables if `write`."""
    rows, lines = record.rows(), []
    for page in pages():
        text, name = page.read_text(), page.relative_to(ROOT)
        lines += unmarked_speeds(page)
        try:
            new = fill_page(text, rows)
        except KeyError as missing:
            lines.append(f"{name}: {missing.args[0]}")
            continue
        if new != text and write:
            page.write_text(new)
        elif new != text:
            lines.append(
                f"{name}: its tables differ from the record; python -m benchmarks.pages --write"
            )
    return lines


def main() -> int:
    """Write or check all pages and return the exit code."""
    lines = page_errors("--write" in sys.argv)
    print("\n".join(lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
