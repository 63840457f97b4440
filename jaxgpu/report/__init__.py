"""Reports: the results of a study as one self-contained HTML file.

A study returns a `Report`. `save` stores it in the study's folder as JSON, including its figures;
`write` renders all reports below a folder into one page, and `compare` renders two runs of the same
study side by side. In a job of several processes process 0 writes the files.

Read `parts` first, then `drawing` (figures, in the style of `render.palette`), `record` (the stored
JSON), `validation` (its validation) and `page`, which renders the templates in this folder.
"""

from .drawing import figure, seeds_caption, video, view
from .page import compare, write
from .parts import Figure, Headline, Report, ReportError, Table
from .record import environment, import_extras, read, replace_text, save

__all__ = [
    "Figure",
    "Headline",
    "Report",
    "ReportError",
    "Table",
    "compare",
    "environment",
    "figure",
    "video",
    "seeds_caption",
    "read",
    "import_extras",
    "replace_text",
    "save",
    "view",
    "write",
]
