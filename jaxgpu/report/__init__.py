"""Reports: the results of a study as one self-contained HTML file.

A study returns a `Report`. `save` stores it in the study's folder as JSON, including its figures;
`write` renders all reports below a folder into one page, and `compare` renders two runs of the same
study side by side. In a job of several processes process 0 writes the files.

Read `parts` first, then `drawing` (figures, in the style of `render.palette`), `record` (the stored
JSON), `form` (its validation) and `page`, which renders the templates in this folder.
"""

from .drawing import figure, film, of_seeds, view
from .page import compare, write
from .parts import Figure, Headline, Report, ReportError, Table
from .record import environment, read, ready, replace_text, save

__all__ = [
    "Figure",
    "Headline",
    "Report",
    "ReportError",
    "Table",
    "compare",
    "environment",
    "figure",
    "film",
    "of_seeds",
    "read",
    "ready",
    "replace_text",
    "save",
    "view",
    "write",
]
