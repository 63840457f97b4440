"""Figures of a report: matplotlib images, videos, interactive views, and captions about seeds."""

import base64
import csv
import io
from typing import Any

import numpy as np

from jaxgpu.inputs import arguments
from jaxgpu.inputs.explanations import explain_errors, on_host
from jaxgpu.render import View, mp4
from jaxgpu.render.palette import DARK_INK, INK, LIGHT_INK

from .parts import IMAGE_FORMATS, Figure, check_text

_MAX_ROWS = 50_000  # maximum rows of numbers stored with a figure; larger data are omitted

# an image in a page follows its light or dark mode, as `color-scheme` applies to it
_PAGE_STYLE = (
    f"<style>svg{{color:{LIGHT_INK};fill:currentColor}}"
    f"@media(prefers-color-scheme:dark){{svg{{color:{DARK_INK}}}}}</style>"
)


@explain_errors
@on_host
def figure(drawing: Any, caption: str, mime: str = "image/svg+xml") -> Figure:
    """Convert a matplotlib figure, with the numbers of its lines, and close it.

    An SVG has no background, and black or `render.palette.INK` becomes the page's text colour. It
    is shown at its own size; 9.4 inches fill the page. `render.palette.report_style` gives a
    drawing the fonts and colours of all reports.

    Raises:
        ValueError, TypeError: not a figure, a caption that is not a string, or `mime` not SVG or
            PNG.

    >>> import matplotlib.pyplot as plt
    >>> drawing, axes = plt.subplots()
    >>> figure(drawing, "An empty frame.").mime
    'image/svg+xml'
    """
    import matplotlib.pyplot as plt

    if not hasattr(drawing, "savefig"):
        found = arguments.format_value(drawing)
        raise TypeError(f"report.figure: drawing={found}; it must be a matplotlib figure")
    check_text("report.figure: caption", caption)
    kind = IMAGE_FORMATS[arguments.word("report.figure: mime", mime, tuple(IMAGE_FORMATS))]
    file = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "jaxgpu"}):
        stamp = {"Date": None} if kind == "svg" else {}
        clear = kind == "svg"  # text in a PNG cannot follow the page, so it needs a background
        ground = {"transparent": True} if clear else {"facecolor": "white"}
        drawing.savefig(
            file,
            format=kind,
            dpi=192 if clear else 96,
            bbox_inches="tight",
            pad_inches=0.02,
            metadata=stamp,
            **ground,
        )
    numbers = _line_data_csv(drawing)
    plt.close(drawing)
    data = follow_page(file.getvalue()) if clear else file.getvalue()
    return Figure(caption, mime, base64.b64encode(data).decode(), numbers)


def follow_page(svg: bytes) -> bytes:
    """Make black text and lines of an SVG follow the text colour of the page, light or dark.

    >>> follow_page(b'<svg><path style="fill: #000000"/></svg>').count(b"currentColor")
    2
    """
    drawn = svg.decode()
    for ink in (INK, "#000000"):
        drawn = drawn.replace(ink, "currentColor")
    head, opening, rest = drawn.partition("<svg")
    attributes, close, inner = rest.partition(">")
    return f"{head}{opening}{attributes}{close}{_PAGE_STYLE}{inner}".encode()


@explain_errors
@on_host
def video(images: Any, caption: str, seconds: float = 0.05) -> Figure:
    """Make a video of images [T, H, W, 3] in 0 ... 1, or of 8-bit ones, shown at its own size.

    Args:
        images: the frames; an odd height or width is cropped by one pixel.
        caption: a sentence that describes the video.
        seconds: duration of each image, s.
    Raises:
        ValueError, TypeError: images of another shape, or a caption that is not a string.
        ModuleNotFoundError: the extra `viz` is not installed.

    >>> video(np.zeros((4, 16, 16, 3)), "Darkness.").mime
    'video/mp4'
    """
    check_text("report.video: caption", caption)
    return Figure(caption, "video/mp4", base64.b64encode(mp4(images, seconds)).decode())


@explain_errors
@on_host
def view(seen: View, caption: str) -> Figure:
    """Make a figure of an interactive view, as returned by `jaxgpu.show`.

    Raises:
        TypeError: `seen` is not a view, or `caption` not a string.

    >>> from jaxgpu import show
    >>> view(show(np.zeros((1, 3))), "A point at the origin.").mime
    'text/html'
    """
    check_text("report.view: caption", caption)
    if not isinstance(seen, View):
        found = arguments.format_value(seen)
        raise TypeError(f"report.view: seen={found}; it must be what jaxgpu.show returns")
    return Figure(caption, "text/html", base64.b64encode(seen.page().encode()).decode())


@explain_errors
def seeds_caption(seeds: int, many: str) -> str:
    """Return the caption for lines over seeds: `many` with their number, or a note if it is one.

    Args:
        seeds: number of seeds.
        many: caption for two or more; `{n}` in it is their number.

    >>> text = "Lines are medians of {n} seeds."
    >>> seeds_caption(8, text), seeds_caption(1, text)
    ('Lines are medians of 8 seeds.', 'One seed, so there is no spread to show.')
    """
    if seeds == 1:
        return "One seed, so there is no spread to show."
    return many.format(n=seeds)


def _line_data_csv(drawing: Any) -> str:
    """Return the points of all data lines as CSV, one per row; empty if there are too many."""
    file = io.StringIO()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["panel", "line", "x", "y"])
    count = 0
    for panel, axes in enumerate(drawing.axes):
        for line in axes.get_lines():
            x, y = (np.ravel(np.asarray(a)) for a in line.get_data(orig=True))
            name = str(line.get_label())
            # a reference line across the panel is not data
            if len(x) != len(y) or line.get_transform() != axes.transData:
                continue
            count += len(x)
            if count > _MAX_ROWS:
                return ""
            label = axes.get_title() or panel + 1
            for one in zip(x, y):
                rows.writerow([label, name.lstrip("_"), *map(_format_short, one)])
    return file.getvalue() if count else ""


def _format_short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
