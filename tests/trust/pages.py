"""Tables of docs/trust.md that come from the results: `python -m tests.trust.pages [--write]`.

The page holds marks with the names of parts; the text between them is written from the newest rows
of `results.jsonl`:

    <!-- proved: kills; flips -->
    <!-- end of proved -->

A * matches all parts that were ever run, in the order in which they run.
"""

import re
import sys
from pathlib import Path
from typing import Any

from tests.trust import record

PAGE = Path(__file__).parents[2] / "docs" / "trust.md"
MARK = re.compile(r"<!-- proved: (.+?) -->\n.*?<!-- end of proved -->", re.DOTALL)


def fill_page(text: str, rows: dict[str, dict[str, Any]]) -> str:
    """Return a page whose marks hold the tables of these rows."""
    return MARK.sub(lambda mark: _fill_mark(mark[1], rows), text)


def _fill_mark(names: str, rows: dict[str, dict[str, Any]]) -> str:
    lines = ["| part | found | minutes | when |", "|---|---|---:|---|"]
    for name in sorted(rows, key=record.place) if names == "*" else names.split("; "):
        row = rows[name]
        said = "; ".join(f"{what}: {count}" for what, count in row["counts"].items())
        when = f"{row['date'][:10]}, commit {row['commit']}, jax {row['versions']['jax']}"
        lines.append(f"| `{name}` | {said} | {row['seconds'] / 60:.1f} | {when} |")
    table = "\n".join(lines)
    return f"<!-- proved: {names} -->\n{table}\n<!-- end of proved -->"


def write() -> None:
    """Rewrite the tables of the page."""
    PAGE.write_text(fill_page(PAGE.read_text(), record.rows()))


def main() -> int:
    """Write the page, or return 1 if it differs from the record."""
    if "--write" in sys.argv:
        write()
    elif fill_page(PAGE.read_text(), record.rows()) != PAGE.read_text():
        print("docs/trust.md: its tables are not the record's; python -m tests.trust.pages --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
