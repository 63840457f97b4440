"""Colours and fonts of all figures: one palette, legible on white and on dark pages.

Every colour has a contrast of at least 3.6 to white and to the dark of the report's page. `INK`
represents the text colour of the page: in an SVG it follows the page.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from jaxgpu.inputs.extras import extra

LIGHT_PAGE, DARK_PAGE = "#ffffff", "#12161c"
LIGHT_INK, DARK_INK = "#1c2530", "#e4e8ee"
INK = LIGHT_INK  # text and axes; `report.figure` makes it follow the page

BLUE, ORANGE, GREEN = "#2f7fc1", "#d2602f", "#2f9468"
OCHRE, PURPLE, ROSE, GRAY = "#b07d12", "#8f6cc0", "#c2568f", "#7b8794"
SERIES = (BLUE, ORANGE, GREEN, OCHRE, PURPLE, ROSE, GRAY)
BAND = 0.22  # opacity of a band about a line

# 9 points are 12 pixels in a figure of native size
_STYLE = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRAY,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.6,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.constrained_layout.use": True,
}


def report_style[**P, T](draw: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function that draws with matplotlib to use the fonts and colours of reports.

    >>> @report_style
    ... def line():
    ...     import matplotlib.pyplot as plt
    ...     return plt.subplots()[1].plot([1, 2])[0].get_color()
    >>> line() == BLUE
    True
    """

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        matplotlib = extra("matplotlib", "viz", "report")
        cycle = extra("cycler", "viz", "report").cycler(color=SERIES)
        with matplotlib.rc_context({**_STYLE, "axes.prop_cycle": cycle}):
            return draw(*args, **kwargs)

    return wrapped


def alpha_colormap(colour: str = BLUE) -> Any:
    """Return a colour map from transparent to `colour`, for images on white and on dark pages."""
    colors = extra("matplotlib.colors", "viz", "report")
    red, green, blue = colors.to_rgb(colour)
    shades = [(red, green, blue, 0.0), (red, green, blue, 1.0)]
    return colors.LinearSegmentedColormap.from_list("fading", shades)


def assign_colors(names: Sequence[str]) -> dict[str, str]:
    """Map each name to a colour, in order; the palette repeats after its last colour.

    >>> assign_colors(["ours", "theirs"])
    {'ours': '#2f7fc1', 'theirs': '#d2602f'}
    """
    return {name: SERIES[i % len(SERIES)] for i, name in enumerate(names)}
