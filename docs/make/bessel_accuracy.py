"""Largest errors of the log-Bessel functions in each region of the plane, for docs/bessel.md.

    export PYTHONPATH=tests/helpers
    python docs/make/bessel_accuracy.py            measure, and write the table into the page
    python docs/make/bessel_accuracy.py FILE ...   measure on other tables, and print

The points are the 25-digit tables of the tests, or others made by docs/make/bessel_points.py.
"""

import sys
from pathlib import Path

from bessel_errors import markdown, rows
from bessel_table import Table, load_tables

PAGE = Path(__file__).parents[1] / "bessel.md"


def main() -> None:
    """Write the table into the page, or print the table of other files."""
    if files := sys.argv[1:]:
        print(markdown(rows(Table(*(Path(file).read_text() for file in files)))))
        return
    text = PAGE.read_text()
    before, rest = text.split("<!-- accuracy -->\n")
    after = rest.split("<!-- end of accuracy -->\n")[1]
    marks = ("<!-- accuracy -->\n", "\n<!-- end of accuracy -->\n")
    PAGE.write_text(before + marks[0] + markdown(rows(load_tables())) + marks[1] + after)


if __name__ == "__main__":
    main()
