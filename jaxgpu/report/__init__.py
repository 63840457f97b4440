"""A study's results as one HTML file that needs nothing beside it.

A study returns a `Report`; `save` keeps it in the study's folder as JSON, figures inside, `write`
draws every report below a folder into one page, and `compare` two runs of the same study into
another. In a job of several processes process 0 writes them.

Read `parts` first, then `drawing` (figures, in the one style of `render.palette`), `record` (what
is kept), `form` (what a file must hold) and `page`, which puts the templates beside it together.
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
